//! Pages: one self-contained file each, without scripts.

mod chart;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figures::{Document, Figure, Section, Table};

/// Colours of the light and the dark theme.
const COLOURS: &str = include_str!("style.css");
const PAGE: &str = include_str!("page.css");
/// A content policy that allows only what the page itself contains, whatever a record says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Tables of up to this many rows are shown open.
const SHORT: usize = 16;

/// One page of `documents`. The same figures of the same graph are side by side.
pub fn page(documents: &[Document]) -> String {
    page_with(documents, None)
}

/// As [`page`], with the section `first` before all others.
pub fn page_with(documents: &[Document], first: Option<&Section>) -> String {
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
                        p.command { @if several { (document.name) ": " } code { (document.command) } }
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

/// The chart of `figure` as a file of its own (`None`: it has no chart).
pub fn picture(figure: &Figure) -> Option<String> {
    Some(format!("{}\n", chart::svg(figure, Some(COLOURS))?))
}

/// The anchor of a figure, for links.
fn anchor(section: &str, figure: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{}-{figure}", section.chars().map(plain).collect::<String>())
}

fn contents(documents: &[Document], first: Option<&Section>) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @if let Some(first) = first {
                    @for figure in &first.figures { (link(&first.title, figure)) }
                }
                @for title in titles(documents) {
                    @let of = titled(documents, title);
                    @for id in ids(&of) {
                        @if let Some(figure) = of.iter().flat_map(|(_, section)| &section.figures).find(|figure| figure.id == id) {
                            (link(title, figure))
                        }
                    }
                }
            }
        }
    }
}

fn link(section: &str, figure: &Figure) -> Markup {
    html! { li { a href={ "#" (anchor(section, figure.id)) } { (section) ": " (figure.title) } } }
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

/// Titles of the sections of all documents, without repeats: first those of the first document.
fn titles(documents: &[Document]) -> Vec<&str> {
    let mut titles: Vec<&str> = Vec::new();
    for section in documents.iter().flat_map(|document| &document.sections) {
        if !titles.contains(&section.title.as_str()) {
            titles.push(&section.title);
        }
    }
    titles
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
    let mut ids = Vec::new();
    for figure in of.iter().flat_map(|(_, section)| &section.figures) {
        if !ids.contains(&figure.id) {
            ids.push(figure.id);
        }
    }
    ids
}

/// The facts of sections of the same title as one table, a column for each document.
fn compared(of: &[(&Document, &Section)]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in of.iter().flat_map(|(_, section)| &section.facts) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    html! {
        @if !names.is_empty() {
            div.wide { table {
                thead { tr { th { "" } @for (document, _) in of { th { (document.name) } } } }
                tbody {
                    @for name in names {
                        tr {
                            th scope="row" { (name) }
                            @for (_, section) in of {
                                @match section.facts.iter().find(|(other, _)| other == name) {
                                    Some((_, cell)) => { td data-value=[cell.value] { (cell.text) } }
                                    None => { td { "-" } }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn facts(section: &Section) -> Markup {
    html! {
        @if !section.facts.is_empty() {
            dl.facts {
                @for (name, cell) in &section.facts { div { dt { (name) } dd data-fact=(name) data-value=[cell.value] { (cell.text) } } }
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
            thead { tr { @for (place, column) in table.columns.iter().enumerate() { th scope="col" class=[class(place)] { (column) } } } }
            tbody { @for row in &table.rows { tr {
                @for (place, cell) in row.iter().enumerate() { td class=[class(place)] data-value=[cell.value] { (cell.text) } }
            } } }
        } }
    }
}

/// The table of machine and settings: one column for each document; rows that differ come first.
fn environment(documents: &[Document]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in documents.iter().flat_map(|document| &document.environment) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let values = |name: &str| -> Vec<&str> {
        let of = |document: &'_ Document| document.environment.iter().position(|(other, _)| other == name);
        documents.iter().map(|document| of(document).map_or("-", |place| document.environment[place].1.as_str())).collect()
    };
    names.sort_by_key(|name| values(name).windows(2).all(|pair| pair[0] == pair[1]));
    html! {
        h2 { "Environment" }
        details {
            summary { "Machine, build and settings" }
            div.wide { table {
                @if documents.len() > 1 { thead { tr { th { "" } @for document in documents { th { (document.name) } } } } }
                tbody { @for name in names { tr { th scope="row" { (name) } @for value in values(name) { td { (value) } } } } }
            } }
        }
    }
}
