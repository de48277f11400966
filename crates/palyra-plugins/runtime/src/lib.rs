//! Runs WebAssembly plugins: limits, grants, host interfaces, compiled code kept on disk.
