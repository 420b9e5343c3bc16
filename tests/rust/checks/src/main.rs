//! Models in one program: what is refused, what other threads may do.

include!(concat!(env!("OUT_DIR"), "/sums.rs"));
include!(concat!(env!("OUT_DIR"), "/found.rs"));
include!(concat!(env!("OUT_DIR"), "/repeated.rs"));
include!(concat!(env!("OUT_DIR"), "/kept.rs"));
include!(concat!(env!("OUT_DIR"), "/grown.rs"));

use nanoloom::{Cancellation, Error, Model, F16};
use std::time::Duration;

fn said(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

fn refused(model: &mut Model) {
    let (x, mut y) = (vec![1f32; 15], vec![0f32; 3]);
    let early = model.run(&[(&x).into()], &mut [(&mut y).into()]);
    assert_eq!(said(early), "x has no sizes yet: call resize");
    assert_eq!(said(model.resize(&[1])), "the model has 2 sizes, and 1 are given");
    let wrong = model.resize(&[-3, 5]).unwrap_err();
    assert_eq!((wrong.status, wrong.text.as_str()), (7, "batch is -3, and at least 0 is wanted"));
    model.resize(&[3, 5]).unwrap();
    let none = model.run(&[], &mut [(&mut y).into()]);
    assert_eq!(said(none), "the model has 1 inputs, and 0 are given");
    let none = model.run(&[(&x).into()], &mut []);
    assert_eq!(said(none), "the model has 1 outputs, and 0 are given");
    let few = model.run(&[x[1..].into()], &mut [(&mut y).into()]);
    assert_eq!(said(few), "x has 15 elements, and 14 are given");
    let halves = vec![F16(0); 15];
    let other = model.run(&[(&halves).into()], &mut [(&mut y).into()]);
    assert_eq!(said(other), "x is f32, not f16");
    let few = model.run(&[(&x).into()], &mut [y[1..].as_mut().into()]);
    assert_eq!(said(few), "y has 3 elements, and 2 are given");
    assert_eq!(said(model.buffer::<i64>(0).map(|_| ())), "y is f32, not i64");
    assert_eq!(said(model.output(1).map(|_| ())), "there is no output 1");
    model.run(&[(&x).into()], &mut [(&mut y).into()]).unwrap();
    assert_eq!(y, [5.0; 3]);
}

/// Handles go to threads of their own, and share what is constant.
fn threads() {
    let handles: Vec<_> = (1..5i64)
        .map(|rows| {
            let mut model = Model::new(&sums::FUNCTIONS, 1).unwrap();
            std::thread::spawn(move || {
                model.resize(&[rows, 2]).unwrap();
                let x = vec![rows as f32; 2 * rows as usize];
                let mut y: Vec<f32> = model.buffer(0).unwrap();
                for _ in 0..50 {
                    model.run(&[(&x).into()], &mut [(&mut y).into()]).unwrap();
                }
                (model.output(0).unwrap().shape, y)
            })
        })
        .collect();
    for (rows, handle) in (1..5i64).zip(handles) {
        assert_eq!(handle.join().unwrap(), (vec![rows], vec![2.0 * rows as f32; rows as usize]));
    }
}

/// How much of an output counts, the data say: memory is there for the largest.
fn counted() {
    let mut model = Model::new(&found::FUNCTIONS, 0).unwrap();
    let mut places: Vec<i64> = model.buffer(0).unwrap();
    assert_eq!(places.len(), 6);
    for (x, wanted) in [([0f32, 2., 0., 0., 3., 1.], vec![1i64, 4, 5]), ([0.; 6], vec![])] {
        model.run(&[x[..].into()], &mut [(&mut places).into()]).unwrap();
        let shape = model.output(0).unwrap().shape;
        assert_eq!(shape, [1, wanted.len() as i64]);
        assert_eq!(places[..wanted.len()], wanted);
    }
}

/// What ends early says why, and leaves the model as good as before.
fn limited() {
    let mut model = Model::new(&repeated::FUNCTIONS, 2).unwrap();
    let (x, mut y) = ([1f32, -2.0], [0f32; 2]);
    let mut run = |model: &mut Model, trips: i64| {
        model.run(&[[trips][..].into(), x[..].into()], &mut [y[..].as_mut().into()])?;
        Ok(y)
    };
    let status = |made: Result<[f32; 2], Error>| made.unwrap_err().status;
    model.limit(Some(Duration::from_millis(5)), None);
    assert_eq!(status(run(&mut model, 1 << 42)), 14);
    model.limit(Some(Duration::ZERO), None);
    assert_eq!(status(run(&mut model, 3)), 14);
    let stop = Cancellation::default();
    model.limit(Some(Duration::MAX), Some(&stop));
    assert_eq!(run(&mut model, 3).unwrap(), [1.75, -3.5]);
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        stop.cancel();
    });
    assert_eq!(status(run(&mut model, 1 << 42)), 13);
    other.join().unwrap();
    model.limit(None, None);
    assert_eq!(run(&mut model, 3).unwrap(), [1.75, -3.5]);
}

/// Each run adds its rows to those before; the sums are of all that are kept.
fn kept() {
    let mut model = Model::new(&kept::FUNCTIONS, 1).unwrap();
    let mut add = |model: &mut Model, rows: &[f32]| {
        model.resize(&[rows.len() as i64 / 4])?;
        let mut y: Vec<f32> = model.buffer(0)?;
        model.run(&[rows.into()], &mut [(&mut y).into()])?;
        Ok::<_, Error>(y)
    };
    assert_eq!(add(&mut model, &[1., 2., 3., 4.]).unwrap(), [1., 2., 3., 4.]);
    model.reserve(40).unwrap();
    assert_eq!(add(&mut model, &[1.; 8]).unwrap(), [3., 4., 5., 6., 3., 4., 5., 6.]);
    assert_eq!(model.length().unwrap(), 3);
    model.rewind(1).unwrap();
    assert_eq!(add(&mut model, &[10.; 4]).unwrap(), [11., 12., 13., 14.]);
    let wrong = model.rewind(9).unwrap_err();
    assert!(wrong.status != 0 && model.length().unwrap() == 2, "{wrong}");
    let mut other = Model::new(&found::FUNCTIONS, 1).unwrap();
    let none = "it is no session: compile it with --session";
    assert_eq!(said(other.rewind(0)), none);
    assert_eq!(said(other.length().map(|_| ())), none);
}

/// A run allocates what the data want, and more for a larger one.
fn grown() {
    let mut model = Model::new(&grown::FUNCTIONS, 1).unwrap();
    let of = |model: &mut Model, top: i64| {
        model.run_alloc(&[[top][..].into(), [2i64][..].into()])
    };
    let small = of(&mut model, 3).unwrap();
    let large = of(&mut model, 2000).unwrap();
    drop(of(&mut model, 70).unwrap());
    assert_eq!(small.tensors()[1].shape, [3]);
    assert_eq!(small.data::<i64>(1).unwrap(), [0, 2, 8]);
    let doubled: Vec<i64> = (0..2000).map(|i| 2 * i * i).collect();
    assert_eq!(large.data::<i64>(1).unwrap(), doubled);
    assert_eq!(large.data::<i64>(2).unwrap(), [2000]);
    assert_eq!(said(large.data::<f32>(1).map(|_| ())), "doubled is i64, not f32");
    assert_eq!(said(large.data::<i64>(4).map(|_| ())), "there is no output 4");
    let late = model.run(&[], &mut []);
    assert_eq!(said(late), "its sizes have no bound: call run_alloc");
    let other = Model::new(&found::FUNCTIONS, 1).unwrap().run_alloc(&[]).map(|_| ());
    let bound = "its sizes have a bound: call run with memory for the outputs";
    assert_eq!(said(other), bound);
    drop(model);
    assert_eq!(small.data::<i64>(3).unwrap(), [4]);
}

fn main() {
    refused(&mut Model::new(&sums::FUNCTIONS, 2).unwrap());
    let many = Model::new(&sums::FUNCTIONS, 1025).map(|_| ());
    assert_eq!(many.unwrap_err().status, 1);
    threads();
    counted();
    limited();
    kept();
    grown();
    println!("all is right");
}
