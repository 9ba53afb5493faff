// Callgrind begins to count where the first is called, and writes down what it counted where the second is:
// instructions.py has their names. Their bodies differ, so that they are not made one function.
#pragma once

[[gnu::noinline]] inline void counting_begins() { asm volatile("# begins"); }
[[gnu::noinline]] inline void counting_ends() { asm volatile("# ends"); }
