//! Pages: one self-contained file each, without scripts.

mod chart;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use socbfs::words::bytes;

use super::figures::{Cell, Document, Figure, Section, Table};

/// Colours of the light and the dark theme.
const COLOURS: &str = include_str!("style.css");
const PAGE: &str = include_str!("page.css");
/// A content policy that allows only what the page itself contains, whatever a record says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Tables of up to this many rows are shown open.
const SHORT: usize = 16;

/// One page of `documents`, with the section `first` before all others. The same figures of the same graph are side by side.
pub fn page(documents: &[Document], first: Option<&Section>) -> String {
    let title = match documents {
        [one] => one.title.clone(),
        _ => format!("{} records side by side", documents.len()),
    };
    let several = documents.len() > 1;
    let css = format!("{COLOURS}{PAGE}");
    let compare = documents.iter().fold("socbfs compare".to_owned(), |command, document| format!("{command} {}", document.name));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) " - socbfs" }
                style { (PreEscaped(css)) }
            }
            body {
                header {
                    h1 { (title) }
                    @for document in documents {
                        p.command { @if several { (document.name) ": " } (machine(document)) code { (document.command) } }
                    }
                }
                @for document in documents {
                    @for warning in &document.warnings { p.warning { "Warning: " @if several { (document.name) ": " } (warning) } }
                }
                (contents(documents, first))
                main { @if let Some(first) = first { (sections(first, &compare)) } @if several { (side_by_side(documents)) } @else { @for section in documents.iter().flat_map(|document| &document.sections) { (sections(section, &documents[0].command)) } } }
                footer { (environment(documents)) }
            }
        }
    }
    .into_string()
}

/// The machine on which the record was made, as far as it is known: processor, memory, and system.
fn machine(document: &Document) -> String {
    let find = |key: &str| document.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let cpus = find("cpu.usable").map(|count| if count == "1" { "1 CPU".to_owned() } else { format!("{count} CPUs") });
    let memory = find("memory_bytes").and_then(|count| Some(bytes(count.parse().ok()?)));
    let known = [find("cpu.model").map(str::to_owned), cpus, memory, find("system.kernel").map(str::to_owned)];
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!("{}. ", known.join(", ")) }
}

/// The chart of `figure` as a file of its own (`None`: it has no chart). Few programs but browsers know variables, so it has the colours
/// of the light theme themselves. A style replaces them where a dark theme is asked for.
pub fn picture(figure: &Figure) -> Option<String> {
    let (light, dark) = COLOURS.split_once("@media ")?;
    let named = |css: &'static str| css.split(['{', ';', '}']).filter_map(|entry| entry.trim().strip_prefix("--")?.split_once(':'));
    let (query, _) = dark.split_once('{')?;
    let mut style = format!("@media {query}{{");
    for (name, light) in named(light) {
        let dark = named(dark).find(|(other, _)| *other == name)?.1;
        for what in ["fill", "stroke"] {
            style += &format!("[{what}=\"{light}\"]{{{what}:{dark}}}");
        }
    }
    let mut picture = chart::svg(figure, Some(&(style + "}")))?;
    for (name, light) in named(light) {
        picture = picture.replace(&format!("\"var(--{name})\""), &format!("\"{light}\""));
    }
    Some(picture + "\n")
}

/// The anchor of a figure, for links.
fn anchor(section: &str, figure: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{}-{figure}", section.chars().map(plain).collect::<String>())
}

/// Links to the figures. One whose title stands twice has that of its section, too.
fn contents(documents: &[Document], first: Option<&Section>) -> Markup {
    let mut all: Vec<(&str, &Figure)> =
        first.into_iter().flat_map(|first| first.figures.iter().map(|figure| (&*first.title, figure))).collect();
    for title in titles(documents) {
        let of = titled(documents, title);
        let of_id = |id| of.iter().flat_map(|(_, section)| &section.figures).find(|figure| figure.id == id);
        all.extend(ids(&of).into_iter().filter_map(of_id).map(|figure| (title, figure)));
    }
    let is_alone = |title: &str| all.iter().filter(|(_, figure)| figure.title == title).count() == 1;
    html! {
        nav aria-label="Contents" {
            ul {
                @for (section, figure) in &all {
                    li { a href={ "#" (anchor(section, figure.id)) } { @if !is_alone(&figure.title) { (section) ": " } (figure.title) } }
                }
            }
        }
    }
}

fn sections(section: &Section, command: &str) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            (facts(section))
            @for figure in &section.figures { (shown(section, figure, command, None)) }
        }
    }
}

/// `all` without repeats, in the order of their first places.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in all {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Titles of the sections of all documents: first those of the first document.
fn titles(documents: &[Document]) -> Vec<&str> {
    distinct(documents.iter().flat_map(|document| &document.sections).map(|section| section.title.as_str()))
}

/// The sections of this title, each with its document.
fn titled<'a>(documents: &'a [Document], title: &str) -> Vec<(&'a Document, &'a Section)> {
    let section = |document: &'a Document| document.sections.iter().find(|section| section.title == title);
    documents.iter().filter_map(|document| Some((document, section(document)?))).collect()
}

/// Sections of the same title side by side, in the order of [`titles`].
fn side_by_side(documents: &[Document]) -> Markup {
    html! {
        @for title in titles(documents) {
            @let of = titled(documents, title);
            section {
                h2 { (title) }
                (compared(&of))
                @for id in ids(&of) {
                    div.pair id=(anchor(title, id)) {
                        @for (document, section) in &of {
                            @for figure in section.figures.iter().filter(|figure| figure.id == id) {
                                (shown(section, figure, &document.command, Some(&document.name)))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ids(of: &[(&Document, &Section)]) -> Vec<&'static str> {
    distinct(of.iter().flat_map(|(_, section)| &section.figures).map(|figure| figure.id))
}

/// A table with a column for each document: its values, each with a name. Rows that differ come first if `sorted`.
fn side<'a, V: PartialEq>(of: &[(&Document, &'a [(String, V)])], cell: impl Fn(&V) -> Cell, sorted: bool) -> Table {
    let mut names = distinct(of.iter().flat_map(|(_, values)| values.iter().map(|(name, _)| name)));
    let row = |name: &String| -> Vec<Option<&'a V>> {
        of.iter().map(|(_, values)| values.iter().find(|(other, _)| other == name).map(|(_, value)| value)).collect()
    };
    if sorted {
        names.sort_by_key(|name| row(name).windows(2).all(|pair| pair[0] == pair[1]));
    }
    let head = |document: &Document| if of.len() > 1 { document.name.clone() } else { String::new() };
    let cells = |name: &String| row(name).into_iter().map(|value| value.map_or_else(|| Cell::word("-"), &cell)).collect::<Vec<_>>();
    Table {
        columns: std::iter::once(String::new()).chain(of.iter().map(|(document, _)| head(document))).collect(),
        rows: names.into_iter().map(|name| [vec![Cell::word(name)], cells(name)].concat()).collect(),
    }
}

/// The facts of sections of the same title as one table.
fn compared(of: &[(&Document, &Section)]) -> Markup {
    let of: Vec<_> = of.iter().map(|(document, section)| (*document, &section.facts[..])).collect();
    let facts = side(&of, Cell::clone, false);
    html! { @if !facts.rows.is_empty() { (table(&facts)) } }
}

fn facts(section: &Section) -> Markup {
    html! {
        @if !section.facts.is_empty() {
            dl.facts {
                @for (name, cell) in &section.facts { div class=[cell.is_sentence().then_some("text")] { dt { (name) } dd data-fact=(name) data-value=[cell.value] { (cell.text) } } }
            }
        }
    }
}

fn shown(section: &Section, figure: &Figure, command: &str, name: Option<&str>) -> Markup {
    html! {
        figure id=[name.is_none().then(|| anchor(&section.title, figure.id))] data-figure=(figure.id) {
            figcaption {
                h3 { (figure.title) @if let Some(name) = name { " - " (name) } }
                p { (figure.sentence) }
            }
            @let svg = chart::svg(figure, None);
            @if let Some(svg) = &svg { div.chart { (PreEscaped(svg)) } }
            @if !figure.table.rows.is_empty() {
                // Without a chart, the table is shown open.
                details open[svg.is_none() || (figure.table.rows.len() <= SHORT && name.is_none())] { summary { "Numbers" } (table(&figure.table)) }
            }
            p.source { (figure.source) }
            p.command { "Made by " code { (command) } }
        }
    }
}

fn table(table: &Table) -> Markup {
    let texts: Vec<bool> = (0..table.columns.len()).map(|column| table.is_text(column)).collect();
    let class = |place: usize| texts.get(place).is_some_and(|&text| text).then_some("text");
    html! {
        div.wide { table {
            @if table.columns.iter().any(|column| !column.is_empty()) { thead { tr { @for (place, column) in table.columns.iter().enumerate() { th scope="col" class=[class(place)] { (column) } } } } }
            tbody { @for row in &table.rows { tr {
                @for (place, cell) in row.iter().enumerate() { td class=[class(place)] data-value=[cell.value] { (cell.text) } }
            } } }
        } }
    }
}

/// The table of machine and settings.
fn environment(documents: &[Document]) -> Markup {
    let of: Vec<_> = documents.iter().map(|document| (document, &document.environment[..])).collect();
    html! {
        h2 { "Environment" }
        details { summary { "Machine, build and settings" } (table(&side(&of, |value| Cell::word(value), true))) }
    }
}
