//! Thinnest private stand-ins for rooms that are written elsewhere at the same time: deleted at the merge.
#![allow(missing_docs, dead_code, clippy::all, clippy::unwrap_used)]

pub mod stats {
    #[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
    pub struct Summary {
        pub min: f64,
        pub first_quartile: f64,
        pub median: f64,
        pub third_quartile: f64,
        pub max: f64,
        pub mean: f64,
        pub stddev: f64,
    }
    pub fn summary(x: &[f64]) -> Option<Summary> {
        if x.is_empty() {
            return None;
        }
        let n = x.len();
        let mean = x.iter().sum::<f64>() / n as f64;
        let stddev = if n > 1 { (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt() } else { 0.0 };
        let mut s = x.to_vec();
        s.sort_by(f64::total_cmp);
        Some(Summary {
            min: s[0],
            first_quartile: (s[(n - 1) / 4] + s[n / 4]) / 2.0,
            median: (s[(n - 1) / 2] + s[n / 2]) / 2.0,
            third_quartile: (s[n - 1 - (n - 1) / 4] + s[n - 1 - n / 4]) / 2.0,
            max: s[n - 1],
            mean,
            stddev,
        })
    }
}

pub mod validate {
    use crate::graph::{EdgeList, NONE, Vertex};
    pub struct Scratch;
    impl Scratch {
        pub fn new(_vertices: usize) -> Self {
            Self
        }
    }
    #[derive(Debug)]
    pub struct Validated {
        pub reached: u64,
        pub levels: u32,
        pub edges: u64,
    }
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    pub struct Violation(pub String);
    pub fn validate(edges: &EdgeList, directed: bool, root: Vertex, parent: &[Vertex], _: &mut Scratch) -> Result<Validated, Violation> {
        let n = edges.vertices();
        let mut level = vec![NONE; n];
        if parent[root as usize] != root {
            return Err(Violation(format!("check 1: the parent of root {root} is not itself")));
        }
        level[root as usize] = 0;
        for v in 0..n as u32 {
            let (mut at, mut depth) = (v, 0);
            while parent[at as usize] != NONE && at != root {
                at = parent[at as usize];
                depth += 1;
                if depth as usize > n || at as usize >= n {
                    return Err(Violation(format!("check 1: vertex {v} is on a cycle")));
                }
            }
            if at == root {
                level[v as usize] = depth;
            }
        }
        let mut real = vec![false; n];
        let (mut count, mut bad) = (0, None);
        edges.for_each(0..edges.len(), |u, v| {
            let (a, b) = (level[u as usize], level[v as usize]);
            real[u as usize] |= parent[u as usize] == v && !directed;
            real[v as usize] |= parent[v as usize] == u;
            count += u64::from(a != NONE && u != v);
            let fine = if directed {
                a == NONE || (b != NONE && b <= a + 1)
            } else {
                (a == NONE) == (b == NONE) && (a == NONE || a.abs_diff(b) <= 1)
            };
            if !fine {
                bad = Some(Violation(format!("check 3: edge {u} - {v} joins levels {a} and {b}")));
            }
        });
        if let Some(bad) = bad {
            return Err(bad);
        }
        for v in 0..n as u32 {
            if level[v as usize] != NONE && v != root && !real[v as usize] {
                return Err(Violation(format!("check 5: {v} and its parent {} are not joined by an edge", parent[v as usize])));
            }
        }
        let reached = level.iter().filter(|l| **l != NONE).count() as u64;
        let levels = 1 + level.iter().filter(|l| **l != NONE).max().copied().unwrap_or(0);
        Ok(Validated { reached, levels, edges: count })
    }
}

pub mod roots {
    use crate::graph::Vertex;
    pub fn roots(vertices: u64, count: usize, seeds: (u64, u64), eligible: impl Fn(Vertex) -> bool) -> Vec<Vertex> {
        let _ = seeds;
        (0..vertices as u32).filter(|v| eligible(*v)).take(count).collect()
    }
}

pub mod info {
    use crate::graph::{EdgeList, GraphError};
    #[derive(Debug, serde::Serialize)]
    pub struct Info {
        pub vertices: u64,
        pub edges: u64,
    }
    pub fn info(edges: &EdgeList, _directed: bool) -> Result<Info, GraphError> {
        Ok(Info { vertices: edges.vertices() as u64, edges: edges.len() as u64 })
    }
}

pub mod input {
    use crate::graph::{EdgeList, GraphError, Listing};
    use std::{fmt, fs, io, io::Write, path::Path};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Format {
        EdgeListText,
        MatrixMarket,
        GapSg,
    }
    impl Format {
        pub const ALL: [Self; 3] = [Self::EdgeListText, Self::MatrixMarket, Self::GapSg];
        pub const WRITABLE: [Self; 3] = Self::ALL;
        pub fn name(self) -> &'static str {
            match self {
                Self::EdgeListText => "el",
                Self::MatrixMarket => "mtx",
                Self::GapSg => "sg",
            }
        }
        pub fn summary(self) -> &'static str {
            "a format"
        }
        pub fn names() -> String {
            Self::ALL.map(Self::name).join(", ")
        }
        pub fn of_path(path: &Path) -> (Option<Self>, ()) {
            (Self::ALL.into_iter().find(|f| path.extension().is_some_and(|e| e == f.name())), ())
        }
    }
    impl fmt::Display for Format {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.pad(self.name())
        }
    }
    impl std::str::FromStr for Format {
        type Err = String;
        fn from_str(s: &str) -> Result<Self, String> {
            Self::ALL.into_iter().find(|f| f.name() == s).ok_or_else(|| format!("unknown format '{s}'"))
        }
    }
    #[derive(Debug, thiserror::Error)]
    pub enum InputError {
        #[error("{0}: {1}")]
        Io(String, io::Error),
        #[error("{0}:{1}: not an edge")]
        Line(String, usize),
        #[error(transparent)]
        Graph(#[from] GraphError),
    }
    pub use atomic::{AtomicFile, remove_temporaries};
    pub trait Progress: Sync {
        fn update(&self, done: u64, total: u64);
    }
    #[derive(Default)]
    pub struct ReadOptions<'a> {
        pub format: Option<Format>,
        pub progress: Option<&'a dyn Progress>,
    }
    #[derive(Default)]
    pub struct WriteOptions<'a> {
        pub directed: bool,
        pub progress: Option<&'a dyn Progress>,
    }
    pub fn read(path: &Path, _: &ReadOptions<'_>) -> Result<EdgeList, InputError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|e| InputError::Io(name.clone(), e))?;
        let mut edges = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('#')) {
            let mut n = line.split_whitespace().map(|w| w.parse::<u32>().map_err(|_| InputError::Line(name.clone(), i + 1)));
            match (n.next(), n.next()) {
                (Some(u), Some(v)) => edges.push([u?, v?]),
                _ => return Err(InputError::Line(name, i + 1)),
            }
        }
        let n = edges.iter().flatten().max().map_or(0, |m| *m as usize + 1);
        Ok(EdgeList::new(n, edges, Listing::Unknown)?)
    }
    pub fn write(path: &Path, _: Format, edges: &EdgeList, _: &WriteOptions<'_>) -> Result<(), InputError> {
        let fail = |e| InputError::Io(path.display().to_string(), e);
        let mut file = AtomicFile::create(path).map_err(fail)?;
        let mut text = String::new();
        edges.for_each(0..edges.len(), |u, v| text += &format!("{u} {v}\n"));
        file.write_all(text.as_bytes()).map_err(fail)?;
        file.commit().map_err(fail)
    }

    pub mod atomic {
        use std::{fs, io, io::Write, path::*, sync::Mutex};
        static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        #[derive(Debug)]
        pub struct AtomicFile(fs::File, PathBuf, PathBuf);
        impl AtomicFile {
            pub fn create(path: &Path) -> io::Result<Self> {
                if path.exists() && !path.is_file() {
                    return Ok(Self(fs::OpenOptions::new().write(true).open(path)?, PathBuf::new(), PathBuf::new()));
                }
                let temporary = path.with_extension(format!("tmp{}", std::process::id()));
                let file = fs::File::create(&temporary)?;
                ALL.lock().unwrap().push(temporary.clone());
                Ok(Self(file, temporary, path.to_owned()))
            }
            pub fn commit(self) -> io::Result<()> {
                if self.1 == Path::new("") { Ok(()) } else { fs::rename(&self.1, &self.2) }
            }
        }
        impl Drop for AtomicFile {
            fn drop(&mut self) {
                let _ = fs::remove_file(&self.1);
            }
        }
        impl Write for AtomicFile {
            fn write(&mut self, b: &[u8]) -> io::Result<usize> {
                self.0.write(b)
            }
            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }
        pub fn remove_temporaries() {
            for path in ALL.lock().unwrap().drain(..) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

pub mod generate {
    use crate::graph::{EdgeList, GraphError, Listing};
    pub const MAX_SCALE: u32 = 31;
    #[derive(Debug, Clone, PartialEq, serde::Serialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    pub enum Generator {
        Kronecker { scale: u32, edge_factor: u64, seed1: u64, seed2: u64 },
        Rmat { scale: u32, edge_factor: u64, a: f64, b: f64, c: f64, d: f64, seed: u64 },
        Uniform { vertices: u64, edges: u64, seed: u64 },
        Rodinia { vertices: u64, seed: u64 },
        Grid { width: u64, height: u64, deletion: f64, seed: u64 },
    }
    impl Generator {
        pub fn validate(&self) -> Result<(), GraphError> {
            Ok(())
        }
        pub fn work(&self) -> u64 {
            1
        }
        pub fn generate(&self, _: &(dyn Fn(u64) + Sync)) -> Result<EdgeList, GraphError> {
            let (n, m) = match *self {
                Self::Kronecker { scale, edge_factor, .. } | Self::Rmat { scale, edge_factor, .. } => (1 << scale, edge_factor << scale),
                Self::Uniform { vertices, edges, .. } => (vertices, edges),
                Self::Rodinia { vertices, .. } => (vertices, 3 * vertices),
                Self::Grid { width, height, .. } => (width * height, 2 * width * height),
            };
            let mut x = 1_u64;
            let mut next = || {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((x >> 33) % n) as u32
            };
            EdgeList::new(n as usize, (0..m).map(|_| [next(), next()]).collect(), Listing::Once)
        }
    }
    impl std::fmt::Display for Generator {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{self:?}")
        }
    }
}
