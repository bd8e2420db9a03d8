//! Calls between Python and Rust that need no tuple of arguments: the middleware makes some for each request.
//!
//! Python calls a builtin function by its vectorcall, and an object of a class through a tuple that it makes
//! and frees again. So what Python calls often is a builtin function, bound to an object of Rust. In the
//! other direction, the variadic functions of the stable ABI lead to vectorcall.

// The conventions of C are what this file is about.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyNone, PyString, PyTuple};
use pyo3::{Borrowed, BoundObject, PyClass, ffi, intern};

type Object = *mut ffi::PyObject;

/// A class whose objects have a function of one argument.
pub(crate) trait OneArgument: PyClass {
    const FUNCTION: &'static CStr;
    const DEFINITION: &'static ffi::PyMethodDef = &ffi::PyMethodDef {
        ml_name: Self::FUNCTION.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: one::<Self> },
        ml_flags: ffi::METH_O,
        ml_doc: c"".as_ptr(),
    };

    fn call<'py>(
        this: &Bound<'py, Self>,
        argument: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// A class whose objects have a function of three arguments.
pub(crate) trait ThreeArguments: PyClass {
    const FUNCTION: &'static CStr;
    const DEFINITION: &'static ffi::PyMethodDef = &ffi::PyMethodDef {
        ml_name: Self::FUNCTION.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: three::<Self> },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: c"".as_ptr(),
    };

    fn call<'py>(
        this: &Bound<'py, Self>,
        arguments: [&Bound<'py, PyAny>; 3],
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// The function of an object, for Python.
pub(crate) fn of_one<'py, T: OneArgument>(this: &Bound<'py, T>) -> PyResult<Bound<'py, PyAny>> {
    bound(this, T::DEFINITION)
}

/// The function of an object, for Python.
pub(crate) fn of_three<'py, T: ThreeArguments>(
    this: &Bound<'py, T>,
) -> PyResult<Bound<'py, PyAny>> {
    bound(this, T::DEFINITION)
}

fn bound<'py, T>(
    this: &Bound<'py, T>,
    definition: &'static ffi::PyMethodDef,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the definition lives for ever, and Python does not write to it. The function keeps the object.
    unsafe {
        let definition = std::ptr::from_ref(definition).cast_mut();
        let function = ffi::PyCFunction_NewEx(definition, this.as_ptr(), null_mut());
        Bound::from_owned_ptr_or_err(this.py(), function)
    }
}

/// # Safety
/// Python calls it as the function of an object of `T`.
unsafe extern "C" fn one<T: OneArgument>(this: Object, argument: Object) -> Object {
    // SAFETY: a thread that calls a function of Python is attached, both objects live as long as the call,
    // and `bound` took the first from a `Bound<T>`.
    unsafe {
        let py = Python::assume_attached();
        let this = Borrowed::from_ptr(py, this).cast_unchecked::<T>();
        let argument = Borrowed::from_ptr(py, argument);
        returned(py, || T::call(&this, &argument))
    }
}

/// # Safety
/// Python calls it as the function of an object of `T`, with so many arguments.
unsafe extern "C" fn three<T: ThreeArguments>(
    this: Object,
    arguments: *mut Object,
    count: ffi::Py_ssize_t,
) -> Object {
    // SAFETY: as in `one`. There are as many arguments as Python says.
    unsafe {
        let py = Python::assume_attached();
        if count != 3 {
            let error = PyTypeError::new_err(format!("expected 3 arguments, not {count}"));
            return returned(py, || Err(error));
        }
        let this = Borrowed::from_ptr(py, this).cast_unchecked::<T>();
        let [a, b, c] = [0, 1, 2].map(|n| Borrowed::from_ptr(py, *arguments.add(n)));
        returned(py, || T::call(&this, [&a, &b, &c]))
    }
}

/// The result of a function of Python: an object, or null after it has set an exception.
#[inline]
fn returned<'py>(py: Python<'py>, call: impl FnOnce() -> PyResult<Bound<'py, PyAny>>) -> Object {
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(object)) => return object.into_ptr(),
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err("a panic in Talea; standard error has its message"),
    };
    error.restore(py);
    null_mut()
}

/// Stops a thread for ever that unwinds.
///
/// When the interpreter ends, CPython before 3.14 ends daemon threads by `pthread_exit` where they wait for its lock,
/// and glibc unwinds their stack. The process aborts if a frame of Rust catches that. So such a thread stops in the
/// last call that Rust made, as it does in CPython 3.14, and as PyO3 has it where it takes the lock itself.
struct StopIfUnwound;

impl Drop for StopIfUnwound {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a function that runs code of Python.
#[inline(always)]
fn guarded<T>(call: impl FnOnce() -> T) -> T {
    let guard = StopIfUnwound;
    let result = call();
    std::mem::forget(guard);
    result
}

/// Functions that run code of Python: here the compiler knows that they may unwind.
mod code {
    #[cfg(windows)]
    pub(super) use pyo3::ffi::{
        PyImport_Import, PyIter_Send, PyObject_CallFunctionObjArgs, PyObject_CallMethodObjArgs,
        PyObject_CallObject,
    };

    #[cfg(not(windows))]
    unsafe extern "C-unwind" {
        pub(super) fn PyIter_Send(
            iterator: super::Object,
            sent: super::Object,
            result: *mut super::Object,
        ) -> pyo3::ffi::PySendResult;
        pub(super) fn PyImport_Import(name: super::Object) -> super::Object;
        pub(super) fn PyObject_CallObject(
            function: super::Object,
            arguments: super::Object,
        ) -> super::Object;
        pub(super) fn PyObject_CallFunctionObjArgs(function: super::Object, ...) -> super::Object;
        pub(super) fn PyObject_CallMethodObjArgs(
            object: super::Object,
            name: super::Object,
            ...
        ) -> super::Object;
    }
}

pub(crate) struct Callable {
    object: Py<PyAny>,
    /// Whether its class has a `__call__` in Python. Called as a method, that needs no tuple.
    is_instance: bool,
}

impl Callable {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let function = py.import(intern!(py, "types"))?.getattr(intern!(py, "FunctionType"))?;
        let call = object.get_type().getattr_opt(intern!(py, "__call__"))?;
        let is_instance = call.is_some_and(|call| call.get_type().is(&function));
        Ok(Self { object: object.unbind(), is_instance })
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }

    #[inline]
    pub(crate) fn call<'py>(
        &self,
        [a, b, c]: [&Bound<'py, PyAny>; 3],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, object) = (a.py(), self.object.as_ptr());
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_ptr());
        let end: Object = null_mut();
        // SAFETY: all objects live as long as the call, and null ends them.
        unsafe {
            let result = if self.is_instance {
                let call = intern!(py, "__call__").as_ptr();
                guarded(|| code::PyObject_CallMethodObjArgs(object, call, a, b, c, end))
            } else {
                guarded(|| code::PyObject_CallFunctionObjArgs(object, a, b, c, end))
            };
            Bound::from_owned_ptr_or_err(py, result)
        }
    }
}

#[inline]
pub(crate) fn call1<'py>(
    object: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (function, argument, end) =
        (object.as_ptr(), argument.as_ptr(), null_mut::<ffi::PyObject>());
    // SAFETY: both objects live as long as the call, and null ends them.
    unsafe {
        let result = guarded(|| code::PyObject_CallFunctionObjArgs(function, argument, end));
        Bound::from_owned_ptr_or_err(object.py(), result)
    }
}

#[inline]
pub(crate) fn call0<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (function, end) = (object.as_ptr(), null_mut::<ffi::PyObject>());
    // SAFETY: the object lives as long as the call, and null ends its arguments.
    unsafe {
        let result = guarded(|| code::PyObject_CallFunctionObjArgs(function, end));
        Bound::from_owned_ptr_or_err(object.py(), result)
    }
}

/// Calls a method, which may be written in Python.
pub(crate) fn call_method<'py, A>(
    object: &Bound<'py, PyAny>,
    name: &str,
    arguments: A,
) -> PyResult<Bound<'py, PyAny>>
where
    A: IntoPyObject<'py, Target = PyTuple>,
    PyErr: From<A::Error>,
{
    let (py, method) = (object.py(), object.getattr(name)?);
    let arguments = arguments.into_pyobject(py)?.into_bound();
    let (method, arguments) = (method.as_ptr(), arguments.as_ptr());
    // SAFETY: both objects live as long as the call.
    unsafe {
        let result = guarded(|| code::PyObject_CallObject(method, arguments));
        Bound::from_owned_ptr_or_err(py, result)
    }
}

/// A module of Python, which may wait for another import.
pub(crate) fn import<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let name = PyString::new(py, name);
    let name = name.as_ptr();
    // SAFETY: the name lives as long as the call.
    unsafe { Bound::from_owned_ptr_or_err(py, guarded(|| code::PyImport_Import(name))) }
}

/// The outcome of one step of a coroutine or an iterator.
pub(crate) enum Step<'py> {
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
}

/// Runs a coroutine until it waits, or takes the next object of an iterator.
#[inline]
pub(crate) fn step<'py>(coroutine: &Bound<'py, PyAny>) -> PyResult<Step<'py>> {
    let py = coroutine.py();
    let (coroutine, none) = (coroutine.as_ptr(), PyNone::get(py).as_ptr());
    let mut result: Object = null_mut();
    // SAFETY: both objects live as long as the call, which sets the result unless it fails.
    unsafe {
        match guarded(|| code::PyIter_Send(coroutine, none, &mut result)) {
            ffi::PySendResult::PYGEN_NEXT => Ok(Step::Yielded(Bound::from_owned_ptr(py, result))),
            ffi::PySendResult::PYGEN_RETURN => {
                Ok(Step::Returned(Bound::from_owned_ptr(py, result)))
            }
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// Whether a text is this one, most often the same object.
#[inline]
pub(crate) fn is_text(object: &Bound<'_, PyAny>, text: &Bound<'_, PyString>) -> PyResult<bool> {
    Ok(object.is(text) || object.extract::<&str>()? == text.to_str()?)
}
