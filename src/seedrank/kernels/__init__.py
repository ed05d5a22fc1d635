"""Pure numerical kernels: arrays in, arrays out."""
