//! The functions of one model's C header, as `link_model` finds them there.

use std::ffi::{c_char, c_int, c_void};

/// `struct nanoloom_tensor`.
#[repr(C)]
pub struct RawTensor {
    pub name: *const c_char,
    pub element: i32,
    pub rank: i32,
    pub shape: *const i64,
}

pub type Handle = *mut c_void;
pub type Described = unsafe extern "C" fn(i32) -> *const RawTensor;
pub type DescribedOf = unsafe extern "C" fn(Handle, i32) -> *const RawTensor;
pub type OfTokens = unsafe extern "C" fn(Handle, i64) -> c_int;

/// Counts and functions; those that not every model has may be missing.
pub struct Raw {
    pub inputs: usize,
    pub outputs: usize,
    pub sizes: usize,
    /// Whether the data say how much of an output counts.
    pub is_counted: bool,
    pub create: unsafe extern "C" fn(c_int) -> Handle,
    pub destroy: unsafe extern "C" fn(Handle),
    pub limit: unsafe extern "C" fn(Handle, i64, *const i32),
    pub input: Described,
    pub output: Described,
    pub explain: unsafe extern "C" fn(Handle, c_int, *mut c_char, usize) -> c_int,
    /// A model has this or the next.
    pub run: Option<unsafe extern "C" fn(Handle, *const *const c_void, *const *mut c_void) -> c_int>,
    pub run_alloc: Option<unsafe extern "C" fn(Handle, *const *const c_void, *mut *mut c_void) -> c_int>,
    pub free_outputs: Option<unsafe extern "C" fn(*mut *mut c_void)>,
    pub resize: Option<unsafe extern "C" fn(Handle, *const i64) -> c_int>,
    pub input_of: Option<DescribedOf>,
    pub output_of: Option<DescribedOf>,
    pub length: Option<unsafe extern "C" fn(Handle) -> i64>,
    pub rewind: Option<OfTokens>,
    pub reserve: Option<OfTokens>,
}

/// A model that is linked: what `link_model` writes has one.
pub struct Functions(pub(crate) Raw);

impl Functions {
    /// # Safety
    /// Counts and functions are those of one model's header.
    pub const unsafe fn new(raw: Raw) -> Self {
        Functions(raw)
    }
}
