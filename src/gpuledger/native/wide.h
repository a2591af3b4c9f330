/* Functions compiled for several kinds of processors; the one at hand decides which is called. */
#ifndef GPULEDGER_WIDE_H
#define GPULEDGER_WIDE_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#else
#define WIDE
#endif
#define INTO inline __attribute__((always_inline)) /* so that it is as wide as what calls it */

#endif
