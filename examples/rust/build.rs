//! Links the library that MODEL names; its header lies beside it.

fn main() {
    println!("cargo:rerun-if-env-changed=MODEL");
    let library = std::env::var("MODEL").expect("MODEL names a library, model.so");
    if let Err(why) = nanoloom::link_model_as(library, "model") {
        eprintln!("{why}");
        std::process::exit(1);
    }
}
