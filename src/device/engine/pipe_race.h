// SPDX-License-Identifier: Apache-2.0
// Races in one memory between instructions of pipes: for each piece of it the last write and the reads since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/engine/pipes.h"

namespace uir::engine {

/*! \brief Last accesses of one memory. */
class PipeShadow {
 public:
  /*! \brief Pieces have 32 bytes until a narrower access is met. */
  static constexpr int kWidestShift = 5;

  PipeShadow() = default;
  explicit PipeShadow(size_t bytes) : bytes_(bytes) {}

  //! \brief Note an access of [offset, offset + count) by the instruction `epoch` of a pipe.
  //! \return The epoch of an instruction that it is not ordered with; 0: there is none.
  uint64_t Read(const Pipes& pipes, uint64_t epoch, size_t offset, size_t count);
  uint64_t Write(const Pipes& pipes, uint64_t epoch, size_t offset, size_t count);
  //! \brief Number of the last instruction of an actor (an epoch's core and pipe) that wrote any of the bytes, or that
  //! read them since where `reads` says so; 0: there is none.
  uint32_t Last(uint64_t actor, size_t offset, size_t count, bool reads) const;

 private:
  /*! \brief `read` is an epoch, or kSet and the index of a set of them. */
  struct Cell {
    uint64_t write;
    uint64_t read;
  };
  static constexpr uint64_t kSet = uint64_t{1} << 63;
  struct Free {
    void operator()(Cell* p) const { std::free(p); }
  };

  void Prepare(size_t offset, size_t count);
  uint64_t WithRead(const Pipes& pipes, uint64_t reads, uint64_t epoch);
  uint64_t Unordered(const Pipes& pipes, uint32_t pipe, uint64_t reads) const;

  size_t bytes_{0};
  int shift_{kWidestShift};
  std::unique_ptr<Cell[], Free> cells_;
  std::vector<std::vector<uint64_t>> sets_;
};

}  // namespace uir::engine
