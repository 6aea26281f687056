// SPDX-License-Identifier: Apache-2.0
// When a product of four warps pays: cycles of the tensor cores and of shared memory, whichever are more.
//
// Tensor cores of an H100 (SXM) make 989.4e12 operations a second with 16-bit factors (NVIDIA H100 data sheet, dense),
// at 1.83 GHz on 132 processors: 4096 a cycle and processor, 2048 multiply-adds; half of that with 4 bytes, twice with
// one.  mma.sync is taken to reach 0.63 of it on this architecture, which was not measured here (Luo et al.,
// "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", arXiv:2402.13499).  Shared
// memory gives 128 bytes a cycle (CUDA C++ Programming Guide, "Shared Memory": 32 banks of 4 bytes).  Four warps with
// mma.sync read b four times; wgmma reads it once for each 64 rows, and waits at its end for a product whose latency
// nothing hides.
#include <algorithm>
#include <cmath>

#include "codegen/cuda/wgmma.h"

namespace uir::codegen::cuda {

namespace {

struct Rates {
  /*! \brief Multiply-adds a cycle and processor with factors of 2 bytes. */
  double tensor;
  /*! \brief Which part of them mma.sync reaches. */
  double alone;
  /*! \brief Bytes of shared memory a cycle. */
  double shared;
  /*! \brief Cycles between the last product and its end: that of one instruction of mma.sync, and no less. */
  double drain;
};

constexpr Rates kHopper = {2048, 0.63, 128, 32};

std::string Cycles(double value) { return std::to_string(std::lround(value)); }

}  // namespace

bool WgmmaPays(const ProductFigures& f, std::string* reason) {
  const double work = static_cast<double>(kWarpgroup * f.rows * f.cols * f.depth) * f.bytes / 2;
  const double line = static_cast<double>(f.depth) * f.bytes, a_once = static_cast<double>(kWarpgroup * f.rows) * line;
  const double groups = static_cast<double>(f.rows) / kWarpRows;
  const double alone =
      std::max(work / (kHopper.tensor * kHopper.alone),
               ((f.a_in_memory ? a_once : 0) + kWarpgroup * static_cast<double>(f.cols) * line) / kHopper.shared);
  const double a_read = f.a_tiles ? a_once * f.pieces : f.a_in_memory ? a_once : 0;
  const double together =
      std::max(work / kHopper.tensor, (a_read + groups * static_cast<double>(f.cols) * line) / kHopper.shared) +
      kHopper.drain;
  *reason = Cycles(together) + " cycles by wgmma, " + Cycles(alone) + " by mma.sync";
  return together < alone;
}

}  // namespace uir::codegen::cuda
