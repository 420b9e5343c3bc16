//! What a session keeps: the tokens of the runs before.

use std::ffi::c_int;

use crate::functions::OfTokens;
use crate::model::{refused, Error, Model};

/// Of a model that was compiled with `--session`; the others refuse.
impl Model {
    /// How many tokens it keeps.
    pub fn length(&self) -> Result<i64, Error> {
        let Some(length) = self.functions.0.length else {
            return no_session();
        };
        // SAFETY: the handle is this model's.
        Ok(unsafe { length(self.handle) })
    }

    /// Forgets all but the first `length` tokens; 0 begins again.
    pub fn rewind(&mut self, length: i64) -> Result<(), Error> {
        self.with(self.functions.0.rewind, length)
    }

    /// Makes room for so many tokens of the sizes chosen last.
    pub fn reserve(&mut self, tokens: i64) -> Result<(), Error> {
        self.with(self.functions.0.reserve, tokens)
    }

    fn with(&mut self, function: Option<OfTokens>, tokens: i64) -> Result<(), Error> {
        let Some(function) = function else {
            return no_session();
        };
        // SAFETY: the handle is this model's, and `&mut self` runs nothing.
        let status: c_int = unsafe { function(self.handle, tokens) };
        self.require(status)
    }
}

fn no_session<T>() -> Result<T, Error> {
    refused("it is no session: compile it with --session".into())
}
