fn main() {
    for (variable, module) in [("SUMS", "sums"), ("FOUND", "found"), ("LOOP", "repeated")] {
        let library = std::env::var(variable).expect("the test names libraries");
        nanoloom::link_model_as(library, module).unwrap();
    }
    let grown = std::env::var("GROWN").expect("the test names libraries");
    let why = nanoloom::link_model(grown).unwrap_err();
    assert!(why.ends_with("its sizes have no bound: a run allocates, which C and C++ can use"));
    let why = nanoloom::link_model("missing.so").unwrap_err();
    assert!(why.starts_with("missing.so: "), "{why}");
}
