//! Element types, and views of memory that have one.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

/// What the elements of a tensor are: `enum nanoloom_element`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementType(pub i32);

const NAMES: [&str; 13] = [
    "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64",
];

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = usize::try_from(self.0).ok().and_then(|n| NAMES.get(n));
        f.write_str(known.copied().unwrap_or("another type"))
    }
}

/// The bits of a 16-bit float, which Rust has no type for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// A type of elements.
///
/// # Safety
/// Its values are those of the model's type, byte for byte: a model writes any of them.
pub unsafe trait Element: Copy + 'static {
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($kind:ty = $number:literal),*) => {
        $(unsafe impl Element for $kind {
            const TYPE: ElementType = ElementType($number);
        })*
    };
}
elements!(
    bool = 0, i8 = 1, u8 = 2, i16 = 3, u16 = 4, i32 = 5, u32 = 6, i64 = 7, u64 = 8,
    F16 = 9, Bf16 = 10, f32 = 11, f64 = 12
);

/// Elements that a model reads, borrowed for as long.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(crate) data: *const c_void,
    pub(crate) count: usize,
    pub(crate) element: ElementType,
    borrowed: PhantomData<&'a ()>,
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(elements: &'a [T]) -> Self {
        let (data, count) = (elements.as_ptr().cast(), elements.len());
        Input { data, count, element: T::TYPE, borrowed: PhantomData }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

/// Elements that a model writes: nobody else has them meanwhile.
pub struct Output<'a> {
    pub(crate) data: *mut c_void,
    pub(crate) count: usize,
    pub(crate) element: ElementType,
    borrowed: PhantomData<&'a mut ()>,
}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    fn from(elements: &'a mut [T]) -> Self {
        let (data, count) = (elements.as_mut_ptr().cast(), elements.len());
        Output { data, count, element: T::TYPE, borrowed: PhantomData }
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Output<'a> {
    fn from(elements: &'a mut Vec<T>) -> Self {
        elements.as_mut_slice().into()
    }
}
