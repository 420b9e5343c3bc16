//! A handle of a model, its tensors, and what is wrong with a call.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::element::{Element, ElementType, Input, Output};
use crate::functions::{Functions, Handle, RawTensor};

const OK: c_int = 0;
const NO_HANDLE: i32 = 1;
const NO_SIZES: i32 = 6;
const MOST_TEXT: usize = 512;

/// What is wrong, as a sentence. `status`: an `enum nanoloom_status`, 0 where it was found
/// before the model was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: i32,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

pub(crate) fn refused<T>(text: String) -> Result<T, Error> {
    Err(Error { status: OK, text })
}

/// Name, element type and shape of an input or output; -1: known at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub element: ElementType,
    pub shape: Vec<i64>,
}

impl Tensor {
    /// `raw` is a tensor of a model's, valid now.
    unsafe fn copied(raw: &RawTensor) -> Self {
        let rank = usize::try_from(raw.rank).unwrap_or(0);
        let shape = match rank {
            0 => Vec::new(),
            _ => std::slice::from_raw_parts(raw.shape, rank).to_vec(),
        };
        let name = CStr::from_ptr(raw.name).to_string_lossy().into_owned();
        Tensor { name, element: ElementType(raw.element), shape }
    }

    /// How many elements there are.
    pub fn count(&self) -> Result<usize, Error> {
        let sizes: Option<Vec<usize>> =
            self.shape.iter().map(|&size| usize::try_from(size).ok()).collect();
        sizes.map(|all| all.iter().product()).ok_or_else(|| Error {
            status: NO_SIZES,
            text: format!("{} has no sizes yet: call resize", self.name),
        })
    }

    pub(crate) fn require(&self, element: ElementType) -> Result<(), Error> {
        if self.element == element {
            return Ok(());
        }
        refused(format!("{} is {}, not {}", self.name, self.element, element))
    }
}

/// What ends runs from any thread: `cancel` ends those of all models that have it or a
/// clone of it. It stays so.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicI32>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(1, Ordering::Release);
    }
}

/// A handle: its threads and its working memory. Other handles of the model share its
/// parameters.
///
/// It may go to another thread. One thread at a time runs it, which `&mut` sees to; for
/// several, make a handle each.
pub struct Model {
    pub(crate) functions: &'static Functions,
    pub(crate) handle: Handle,
    cancellation: Option<Cancellation>, // whose word the handle reads
    rooms: Vec<usize>,                  // what memory each output needs, where a run says how much counts
}

// A handle belongs to no thread, and what `&self` reads changes by `&mut self` alone.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Model {
    /// `threads`: 0 chooses by the CPUs that this process may use.
    pub fn new(functions: &'static Functions, threads: u16) -> Result<Self, Error> {
        // SAFETY: `functions` are a model's own, by their constructor.
        let handle = unsafe { (functions.0.create)(c_int::from(threads)) };
        if handle.is_null() {
            let text = "no handle: threads are 0 to 1024, memory is out, or there is no code \
                        for this CPU";
            return Err(Error { status: NO_HANDLE, text: text.into() });
        }
        let mut made = Model { functions, handle, cancellation: None, rooms: Vec::new() };
        if functions.0.sizes == 0 {
            made.rooms = made.all_rooms()?;
        }
        Ok(made)
    }

    /// Numbers of the model's sizes, in the order of its header.
    pub fn resize(&mut self, sizes: &[i64]) -> Result<(), Error> {
        let wanted = self.functions.0.sizes;
        if sizes.len() != wanted {
            let given = sizes.len();
            return refused(format!("the model has {wanted} sizes, and {given} are given"));
        }
        if let Some(resize) = self.functions.0.resize {
            // SAFETY: as many numbers as the model has sizes.
            self.require(unsafe { resize(self.handle, sizes.as_ptr()) })?;
            self.rooms = self.all_rooms()?;
        }
        Ok(())
    }

    /// An input, with the sizes of the last resize.
    pub fn input(&self, index: usize) -> Result<Tensor, Error> {
        let raw = &self.functions.0;
        let found = self.described(index, raw.input_of.filter(|_| raw.sizes > 0));
        self.known(found, raw.input, "input", index, raw.inputs)
    }

    /// An output; behind a run with the shape that it found.
    pub fn output(&self, index: usize) -> Result<Tensor, Error> {
        let raw = &self.functions.0;
        let found = self.described(index, raw.output_of);
        self.known(found, raw.output, "output", index, raw.outputs)
    }

    /// Memory for an output: for the largest, where its shape depends on the data.
    pub fn buffer<T: Element + Default>(&self, index: usize) -> Result<Vec<T>, Error> {
        let tensor = self.output(index)?;
        tensor.require(T::TYPE)?;
        Ok(vec![T::default(); self.room(&tensor, index)?])
    }

    /// From now on a run takes so long at most, and ends when somebody cancels it; the next
    /// one is like any other. `None` for as long as it takes.
    pub fn limit(&mut self, time: Option<Duration>, cancellation: Option<&Cancellation>) {
        let most = |x: Duration| i64::try_from(x.as_nanos()).unwrap_or(i64::MAX);
        // No time at all is over at once: 0 says as long as it takes.
        let nanoseconds = time.map_or(0, |x| if x.is_zero() { -1 } else { most(x) });
        self.cancellation = cancellation.cloned();
        let word = self.cancellation.as_ref().map_or(std::ptr::null(), |x| x.0.as_ptr());
        // SAFETY: the word lives as long as the handle has it; `&mut self` runs nothing.
        unsafe { (self.functions.0.limit)(self.handle, nanoseconds, word) }
    }

    /// Reads the inputs and writes the outputs, in the order of the header.
    pub fn run(&mut self, inputs: &[Input], outputs: &mut [Output]) -> Result<(), Error> {
        let raw = &self.functions.0;
        let Some(run) = raw.run else {
            return refused("its sizes have no bound: call run_alloc".into());
        };
        let read = self.pointers(inputs)?;
        require_counts("outputs", raw.outputs, outputs.len())?;
        for (i, made) in outputs.iter().enumerate() {
            let tensor = self.output(i)?;
            require_view(&tensor, self.room(&tensor, i)?, made.element, made.count)?;
        }
        let written: Vec<*mut c_void> = outputs.iter().map(|x| x.data).collect();
        // SAFETY: as many pointers as the model has tensors, each to as many elements of
        // its type; outputs are borrowed by nobody else; `&mut self` is the only runner.
        self.require(unsafe { run(self.handle, read.as_ptr(), written.as_ptr()) })
    }

    /// Where the inputs lie, each of the model's type and count.
    pub(crate) fn pointers(&self, inputs: &[Input]) -> Result<Vec<*const c_void>, Error> {
        require_counts("inputs", self.functions.0.inputs, inputs.len())?;
        for (i, given) in inputs.iter().enumerate() {
            let tensor = self.input(i)?;
            require_view(&tensor, tensor.count()?, given.element, given.count)?;
        }
        Ok(inputs.iter().map(|x| x.data).collect())
    }

    fn described(
        &self,
        index: usize,
        of: Option<crate::functions::DescribedOf>,
    ) -> Option<Tensor> {
        let (of, index) = (of?, i32::try_from(index).ok()?);
        // SAFETY: the handle is this model's; the tensor is valid until the next run.
        unsafe { of(self.handle, index).as_ref().map(|x| Tensor::copied(x)) }
    }

    fn known(
        &self,
        found: Option<Tensor>,
        declared: crate::functions::Described,
        kind: &str,
        index: usize,
        count: usize,
    ) -> Result<Tensor, Error> {
        if index >= count {
            return refused(format!("there is no {kind} {index}"));
        }
        // SAFETY: the index is one of the model's, whose tensors are constants.
        let tensor = || unsafe { declared(index as i32).as_ref().map(|x| Tensor::copied(x)) };
        match found.or_else(tensor) {
            Some(tensor) => Ok(tensor),
            None => refused(format!("there is no {kind} {index}")),
        }
    }

    fn all_rooms(&self) -> Result<Vec<usize>, Error> {
        let counted = self.functions.0.is_counted;
        let outputs = if counted { self.functions.0.outputs } else { 0 };
        (0..outputs).map(|i| self.output(i)?.count()).collect()
    }

    fn room(&self, tensor: &Tensor, index: usize) -> Result<usize, Error> {
        self.rooms.get(index).map_or_else(|| tensor.count(), |&room| Ok(room))
    }

    pub(crate) fn require(&self, status: c_int) -> Result<(), Error> {
        if status == OK {
            return Ok(());
        }
        let mut text = [0u8; MOST_TEXT];
        // SAFETY: so many bytes are there, and the last that is written is 0.
        unsafe {
            let start = text.as_mut_ptr().cast::<c_char>();
            (self.functions.0.explain)(self.handle, status, start, MOST_TEXT);
        }
        let said = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Err(Error { status, text: said.to_string_lossy().into_owned() })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: nobody runs it, and nobody has it any more.
        unsafe { (self.functions.0.destroy)(self.handle) }
    }
}

fn require_counts(kind: &str, wanted: usize, given: usize) -> Result<(), Error> {
    if wanted == given {
        return Ok(());
    }
    refused(format!("the model has {wanted} {kind}, and {given} are given"))
}

fn require_view(
    tensor: &Tensor,
    wanted: usize,
    element: ElementType,
    given: usize,
) -> Result<(), Error> {
    tensor.require(element)?;
    if wanted == given {
        return Ok(());
    }
    let name = &tensor.name;
    refused(format!("{name} has {wanted} elements, and {given} are given"))
}
