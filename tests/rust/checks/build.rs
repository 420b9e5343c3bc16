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
    for file in ["missing.so", "9 lives (1).so", "größe-2.so", "m'q.so"] {
        let why = nanoloom::link_model(file).unwrap_err();
        assert!(why.starts_with(&format!("{file}: No such file")), "{why}");
    }
    for module in ["match", "self", "9_lives", "a b", "a-b", "", "_"] {
        let why = nanoloom::link_model_as("model.so", module).unwrap_err();
        let told = format!("model.so: no module is called {module:?}; give link_model_as another name");
        assert_eq!(why, told);
    }
}
