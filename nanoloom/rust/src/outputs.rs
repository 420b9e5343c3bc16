//! Outputs that a run allocates, of a model whose sizes have no bound.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::element::{Element, Input};
use crate::functions::Functions;
use crate::model::{refused, Error, Model, Tensor};

/// What one run has allocated; freed when it is dropped. It needs no model any more.
pub struct Outputs {
    functions: &'static Functions,
    pointers: Vec<*mut c_void>,
    tensors: Vec<Tensor>,
}

// The memory is nobody else's, and nothing writes it.
unsafe impl Send for Outputs {}
unsafe impl Sync for Outputs {}

impl Outputs {
    /// Their names, element types and shapes, as the run found them.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The elements of an output, dense and row-major.
    pub fn data<T: Element>(&self, index: usize) -> Result<&[T], Error> {
        let Some(tensor) = self.tensors.get(index) else {
            return refused(format!("there is no output {index}"));
        };
        tensor.require(T::TYPE)?;
        let (start, count) = (self.pointers[index].cast::<T>(), tensor.count()?);
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the run wrote so many elements of this type there, at the beginning of
        // a line of cache; they live as long as this.
        Ok(unsafe { std::slice::from_raw_parts(start, count) })
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if let Some(free) = self.functions.0.free_outputs {
            // SAFETY: as many pointers as the model has outputs, of its run or null.
            unsafe { free(self.pointers.as_mut_ptr()) }
        }
    }
}

impl Model {
    /// Reads the inputs and allocates the outputs, of a model whose sizes have no bound.
    pub fn run_alloc(&mut self, inputs: &[Input]) -> Result<Outputs, Error> {
        let raw = &self.functions.0;
        let Some(run) = raw.run_alloc else {
            return refused("its sizes have a bound: call run with memory for the outputs".into());
        };
        let read = self.pointers(inputs)?;
        let pointers = vec![null_mut(); raw.outputs];
        let mut made = Outputs { functions: self.functions, pointers, tensors: Vec::new() };
        // SAFETY: as many pointers as the model has tensors; `&mut self` is the only runner.
        self.require(unsafe { run(self.handle, read.as_ptr(), made.pointers.as_mut_ptr()) })?;
        made.tensors = (0..raw.outputs).map(|i| self.output(i)).collect::<Result<_, _>>()?;
        Ok(made)
    }
}
