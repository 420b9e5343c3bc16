"""The structs of program.h, arrays.h and library.h as ctypes sees them."""

from __future__ import annotations

import ctypes

from nanoloom.manifest import FORMAT

VERSION = FORMAT
NO_ARRAYS = -1  # what run_arrays gives where it does nothing


class Tensor(ctypes.Structure):
    """struct nanoloom_tensor."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("element", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


class Step(ctypes.Structure):
    """struct nanoloom_step."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("tasks", ctypes.c_int64),
        ("first_buffer", ctypes.c_int32),
        ("buffer_count", ctypes.c_int32),
        ("scratch_bytes", ctypes.c_int64),
        ("name", ctypes.c_char_p),
    )


class Check(ctypes.Structure):
    """struct nanoloom_check."""

    _fields_ = (
        ("offset", ctypes.c_int64),
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
        ("where", ctypes.c_char_p),
        ("what", ctypes.c_char_p),
    )


class Program(ctypes.Structure):
    """struct nanoloom_program."""

    _fields_ = (
        ("steps", ctypes.POINTER(Step)),
        ("buffers", ctypes.c_void_p),
        ("checks", ctypes.POINTER(Check)),
        ("repeats", ctypes.c_void_p),
        ("moves", ctypes.c_void_p),
        ("inputs", ctypes.POINTER(Tensor)),
        ("outputs", ctypes.POINTER(Tensor)),
        ("numbers", ctypes.c_void_p),
        ("rooms", ctypes.c_void_p),
        ("words", ctypes.POINTER(ctypes.c_int64)),
        ("parameters", ctypes.c_void_p),
        ("arena_bytes", ctypes.c_int64),
        ("parameter_bytes", ctypes.c_int64),
        ("scratch_bytes", ctypes.c_int64),
        ("alone_bytes", ctypes.c_int64),
        ("step_count", ctypes.c_int32),
        ("buffer_count", ctypes.c_int32),
        ("check_count", ctypes.c_int32),
        ("repeat_count", ctypes.c_int32),
        ("input_count", ctypes.c_int32),
        ("output_count", ctypes.c_int32),
        ("kept_count", ctypes.c_int32),
        ("number_count", ctypes.c_int32),
        ("room_count", ctypes.c_int32),
        ("needs_tiles", ctypes.c_int32),
    )


class Sizes(ctypes.Structure):
    """struct nanoloom_sizes."""

    _fields_ = (
        ("program", ctypes.POINTER(Program)),
        ("dims", ctypes.POINTER(ctypes.c_char_p)),
        ("floors", ctypes.c_void_p),
        ("terms", ctypes.c_void_p),
        ("word_ends", ctypes.c_void_p),
        ("slot_words", ctypes.c_void_p),
        ("slot_ends", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("steps", ctypes.c_void_p),
        ("checks", ctypes.c_void_p),
        ("shape_words", ctypes.c_void_p),
        ("ranges", ctypes.c_void_p),
        ("trip_words", ctypes.c_void_p),
        ("point_words", ctypes.c_void_p),
        ("move_words", ctypes.c_void_p),
        ("shape_texts", ctypes.POINTER(ctypes.c_char_p)),
        ("least", ctypes.POINTER(ctypes.c_int64)),
        ("most", ctypes.POINTER(ctypes.c_int64)),
        ("or_none", ctypes.POINTER(ctypes.c_int32)),
        ("dim_count", ctypes.c_int32),
        ("grown_count", ctypes.c_int32),
        ("floor_count", ctypes.c_int32),
        ("word_count", ctypes.c_int32),
        ("slot_count", ctypes.c_int32),
    )


class Memory(ctypes.Structure):
    """struct nanoloom_memory."""

    _fields_ = (
        ("parameters", ctypes.c_void_p),
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("workspace", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("control", ctypes.c_void_p),
        ("slices", ctypes.c_void_p),
    )


class Slices(ctypes.Structure):
    """struct nanoloom_slices."""

    _fields_ = (
        ("all", ctypes.c_void_p),
        ("room", ctypes.c_int64),
        ("count", ctypes.c_int64),
    )


class Control(ctypes.Structure):
    """struct nanoloom_control."""

    _fields_ = (("deadline", ctypes.c_int64), ("cancelled", ctypes.c_void_p))


class Member(ctypes.Structure):
    """struct nanoloom_member."""

    _fields_ = (("pool", ctypes.c_void_p), ("threads", ctypes.c_int64))


class Call(ctypes.Structure):
    """struct nanoloom_call."""

    _fields_ = (
        ("program", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("parallel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("enter", ctypes.c_void_p),
        ("leave", ctypes.c_void_p),
        ("objects", ctypes.POINTER(ctypes.c_void_p)),
        ("types", ctypes.POINTER(ctypes.c_void_p)),
        ("array_type", ctypes.c_void_p),
        ("header_bytes", ctypes.c_int64),
    )


class Path(ctypes.Structure):
    """struct nanoloom_path."""

    _fields_ = (("count", ctypes.c_int64), ("offsets", ctypes.c_int64 * 3))


class Words(ctypes.Structure):
    """struct nanoloom_words."""

    _fields_ = (
        ("paths", ctypes.POINTER(Path)),
        ("expected", ctypes.POINTER(ctypes.c_int64)),
        ("path_count", ctypes.c_int64),
        ("object_count", ctypes.c_int64),
    )


_PROGRAM = ctypes.POINTER(Program)
_SIZES = ctypes.POINTER(Sizes)
_FAILED = ctypes.CFUNCTYPE(
    ctypes.POINTER(Check), _PROGRAM, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
)


class Library(ctypes.Structure):
    """struct nanoloom_library.  Calling a field releases Python's lock meanwhile."""

    _fields_ = (
        ("version", ctypes.c_int64),
        ("program", _PROGRAM),
        ("workspace_bytes", ctypes.CFUNCTYPE(ctypes.c_int64, _PROGRAM, ctypes.c_int64)),
        # Addresses: converting other arguments takes longer than a small model runs.
        ("run_pointers", ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 2)),
        ("failed", _FAILED),
        ("run_arrays", ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 2)),
        ("rows_together", ctypes.CFUNCTYPE(ctypes.c_int64, _PROGRAM)),
        ("rows_bytes", ctypes.CFUNCTYPE(ctypes.c_int64, _PROGRAM, ctypes.c_int64)),
        (
            "run_rows",
            ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
            ),
        ),
        ("pool_run", ctypes.c_void_p),
        ("pool_enter", ctypes.c_void_p),
        ("pool_leave", ctypes.c_void_p),
        ("pool_create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)),
        ("pool_grow", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)),
        ("pool_bound", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)),
        (
            "pool_place",
            ctypes.CFUNCTYPE(
                None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int
            ),
        ),
        ("pool_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("pool_threads", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
        ("arena_create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)),
        ("arena_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)),
        ("request_tiles", ctypes.CFUNCTYPE(ctypes.c_int)),
        ("sizes", ctypes.POINTER(_SIZES)),
        ("bound_bytes", ctypes.CFUNCTYPE(ctypes.c_int64, _SIZES)),
        (
            "bind",
            ctypes.CFUNCTYPE(
                ctypes.c_void_p, _SIZES, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
            ),
        ),
        # Keeps Python's lock: what it looks into belongs to Python.
        ("same_words", ctypes.PYFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 2)),
    )
