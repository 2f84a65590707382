"""The Split Block Bloom Filter: hashing, kernels, sizing, folding. No I/O, no Spark."""
