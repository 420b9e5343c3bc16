//! Runs a model that nanoloom compiled, from Rust. README.md says how to build it.
//!
//!     distances [SIZE...]        numbers of the named dimensions, 1 where none is given
//!
//! The input is f32 and filled with 0, 0.25, 0.5, ... 1.5, over and over; the first
//! elements of the output are printed.

include!(concat!(env!("OUT_DIR"), "/model.rs"));

use nanoloom::{Error, Model};

fn work() -> Result<(), Error> {
    let mut model = Model::new(&model::FUNCTIONS, 0)?;
    let given = std::env::args().skip(1).map(|word| word.parse().unwrap_or(0));
    let sizes: Vec<i64> = given.collect();
    if !sizes.is_empty() {
        model.resize(&sizes)?;
    }
    let count = model.input(0)?.count()?;
    let x: Vec<f32> = (0..count).map(|i| 0.25 * (i % 7) as f32).collect();
    let mut y: Vec<f32> = model.buffer(0)?;
    model.run(&[(&x).into()], &mut [(&mut y).into()])?;
    let tensor = model.output(0)?;
    let shown: Vec<String> = y[..tensor.count()?].iter().take(8).map(f32::to_string).collect();
    println!("{}: {}", tensor.name, shown.join(" "));
    Ok(())
}

fn main() {
    if let Err(error) = work() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
