//! What `build.rs` calls: a library is linked, and a module is written of its header.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What the header says of the model, in the structure at its end.
struct Header {
    name: String,
    inputs: usize,
    outputs: usize,
    sizes: usize,
    is_counted: bool,
    functions: BTreeSet<String>,
}

/// Links `MODEL.so` or `MODEL.a` into the program that is built, and writes
/// `$OUT_DIR/MODEL.rs`: the module `MODEL`, with its `FUNCTIONS`.
///
/// The header, `MODEL.h`, lies beside the library. The program finds a `.so` where it is
/// now; copy it and set another path for one that is installed.
pub fn link_model(library: impl AsRef<Path>) -> Result<(), String> {
    let stem = library.as_ref().file_stem().unwrap_or_default();
    link_model_as(&library, &module_name(&stem.to_string_lossy()))
}

/// What of a file's name may stand in the name of a module: letters, digits, and `_` for
/// all others.
fn module_name(stem: &str) -> String {
    let begins = if stem.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    let known = |c: char| c.is_alphabetic() || c.is_ascii_digit();
    begins.chars().chain(stem.chars().map(|c| if known(c) { c } else { '_' })).collect()
}

/// Words that Rust keeps for itself.
const KEYWORDS: &str = " _ Self abstract as async await become box break const continue crate do \
    dyn else enum extern false final fn for gen if impl in let loop macro match mod move mut \
    override priv pub ref return self static struct super trait true try type typeof unsafe \
    unsized use virtual where while yield ";

/// The same with another name of the module.
pub fn link_model_as(library: impl AsRef<Path>, module: &str) -> Result<(), String> {
    if module.is_empty()
        || module_name(module) != module
        || KEYWORDS.contains(&format!(" {module} "))
    {
        let file = library.as_ref().display();
        return Err(format!(
            "{file}: no module is called {module:?}; give link_model_as another name"
        ));
    }
    let library = fs::canonicalize(&library)
        .map_err(|error| format!("{}: {error}", library.as_ref().display()))?;
    let header = library.with_extension("h");
    let text = fs::read_to_string(&header)
        .map_err(|error| format!("{}: {error}; nanoloom writes it", header.display()))?;
    let read = read(&text).map_err(|why| format!("{}: {why}", header.display()))?;
    let folder = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    let output = folder.join(format!("{module}.rs"));
    fs::write(&output, module_of(module, &read))
        .map_err(|error| format!("{}: {error}", output.display()))?;
    // The very file: one without `lib` in front of its name is linked as well.
    println!("cargo:rustc-link-arg={}", library.display());
    if library.extension().is_some_and(|x| x == "so") {
        let folder = library.parent().unwrap_or(Path::new("."));
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    } else {
        println!("cargo:rustc-link-arg=-lm");
    }
    println!("cargo:rerun-if-changed={}", library.display());
    println!("cargo:rerun-if-changed={}", header.display());
    Ok(())
}

fn read(text: &str) -> Result<Header, String> {
    let none = || "is no header of a model that nanoloom compiled".to_string();
    let begin = text.rfind("\nstruct nanoloom_").ok_or_else(none)?;
    let part = &text[begin + "\nstruct nanoloom_".len()..];
    let (name, body) = part.split_once("_functions {").ok_or_else(none)?;
    let value = |what: &str| -> Result<&str, String> {
        let (_, rest) = body.split_once(&format!(" {what} = ")).ok_or_else(none)?;
        Ok(rest.split(';').next().unwrap_or_default())
    };
    let count = |what| value(what)?.parse().map_err(|_| none());
    let made = Header {
        name: name.to_string(),
        inputs: count("inputs")?,
        outputs: count("outputs")?,
        sizes: count("sizes")?,
        is_counted: value("is_counted")? == "true",
        functions: body
            .lines()
            .filter_map(|line| line.trim().strip_prefix("static constexpr auto "))
            .filter_map(|line| Some(line.split_once(" = ")?.0.to_string()))
            .collect(),
    };
    if !made.functions.contains("run") && !made.functions.contains("run_alloc") {
        return Err(none());
    }
    Ok(made)
}

/// Names of functions, with what they take and give.
const SIGNATURES: [(&str, &str); 15] = [
    ("create", "(threads: c_int) -> *mut c_void"),
    ("destroy", "(handle: *mut c_void)"),
    ("limit", "(handle: *mut c_void, nanoseconds: i64, cancelled: *const i32)"),
    ("run", "(handle: *mut c_void, inputs: *const *const c_void, outputs: *const *mut c_void) -> c_int"),
    ("run_alloc", "(handle: *mut c_void, inputs: *const *const c_void, outputs: *mut *mut c_void) -> c_int"),
    ("free_outputs", "(outputs: *mut *mut c_void)"),
    ("input", "(index: i32) -> *const RawTensor"),
    ("output", "(index: i32) -> *const RawTensor"),
    ("explain", "(handle: *mut c_void, status: c_int, text: *mut c_char, bytes: usize) -> c_int"),
    ("resize", "(handle: *mut c_void, sizes: *const i64) -> c_int"),
    ("input_of", "(handle: *mut c_void, index: i32) -> *const RawTensor"),
    ("output_of", "(handle: *mut c_void, index: i32) -> *const RawTensor"),
    ("length", "(handle: *mut c_void) -> i64"),
    ("rewind", "(handle: *mut c_void, length: i64) -> c_int"),
    ("reserve", "(handle: *mut c_void, tokens: i64) -> c_int"),
];
const ALWAYS: [&str; 6] = ["create", "destroy", "limit", "input", "output", "explain"];

fn module_of(module: &str, header: &Header) -> String {
    let Header { name, inputs, outputs, sizes, is_counted, functions } = header;
    let (mut declared, mut fields) = (String::new(), String::new());
    for (function, signature) in SIGNATURES {
        let whole = format!("nanoloom_{name}_{function}");
        if functions.contains(function) {
            let _ = writeln!(declared, "        fn {whole}{signature};");
        }
        let value = match (ALWAYS.contains(&function), functions.contains(function)) {
            (false, true) => format!("Some({whole})"),
            (false, false) => "None".to_string(),
            (true, _) => whole,
        };
        let _ = writeln!(fields, "            {function}: {value},");
    }
    format!(
        "/// {name}, as its header describes it.\n\
         #[allow(unused_imports)]\n\
         pub mod {module} {{\n\
         \x20   use nanoloom::{{Functions, Raw, RawTensor}};\n\
         \x20   use std::ffi::{{c_char, c_int, c_void}};\n\
         \x20   extern \"C\" {{\n{declared}    }}\n\
         \x20   pub static FUNCTIONS: Functions = unsafe {{\n\
         \x20       Functions::new(Raw {{\n\
         \x20           inputs: {inputs},\n\
         \x20           outputs: {outputs},\n\
         \x20           sizes: {sizes},\n\
         \x20           is_counted: {is_counted},\n{fields}\
         \x20       }})\n\
         \x20   }};\n\
         }}\n"
    )
}
