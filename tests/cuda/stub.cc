// Stands in for a library that libtorch_cuda.so names and that only a machine with a GPU has. The
// loader is content with its presence; a call into it would end the process.
