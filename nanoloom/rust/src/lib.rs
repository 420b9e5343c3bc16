//! Models that nanoloom compiled: a safe wrapper over their C interface, without
//! dependencies.
//!
//! `build.rs` of the program links a library and writes what is known of it:
//!
//! ```no_run
//! nanoloom::link_model("minilm.so").unwrap();
//! ```
//!
//! The program includes that, and runs it:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/minilm.rs")); // the module minilm
//! let mut model = nanoloom::Model::new(&minilm::FUNCTIONS, 0)?;
//! model.resize(&[4, 128])?;
//! model.run(&[(&x[..]).into()], &mut [(&mut y[..]).into()])?;
//! ```

mod element;
mod functions;
mod link;
mod model;
mod outputs;
mod session;

pub use element::{Bf16, Element, ElementType, Input, Output, F16};
pub use functions::{Functions, Raw, RawTensor};
pub use link::{link_model, link_model_as};
pub use model::{Cancellation, Error, Model, Tensor};
pub use outputs::Outputs;
