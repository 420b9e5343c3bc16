const MODELS: [(&str, &str); 5] = [
    ("SUMS", "sums"),
    ("FOUND", "found"),
    ("LOOP", "repeated"),
    ("KEPT", "kept"),
    ("GROWN", "grown"),
];

fn main() {
    for (variable, module) in MODELS {
        let library = std::env::var(variable).expect("the test names libraries");
        nanoloom::link_model_as(library, module).unwrap();
    }
    let why = nanoloom::link_model("missing.so").unwrap_err();
    assert!(why.starts_with("missing.so: "), "{why}");
}
