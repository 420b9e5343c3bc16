"""Special functions in f64 on scalars: error function, gamma, Bessel."""
