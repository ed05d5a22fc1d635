// What all kernels share. The files of this folder are compiled as one source, this one first; the constants in capitals
// stand in seedrank.kernels._gpu.source, which writes them before it.
//
// Blocks are row-major: element (row, column) of an (n, width) block stands at row * width + column. Lanes are
// neighbouring columns, so a warp reads a row in one transaction. A block of threads is (lanes, STRIPES): narrow blocks
// have fewer lanes, so that a warp has several rows then, and what is summed over rows is summed by stripe, so that the
// order does not depend on the lanes. Every sum has an order that depends on rows alone. Every multiplication with an
// addition is written as fma, and the compiler is told to contract nothing else, so no width of a kernel rounds otherwise
// than another. Floating-point numbers are never added atomically.

typedef long long int64;
typedef unsigned long long uint64;

#define EVERY_LANE 0xffffffffu
