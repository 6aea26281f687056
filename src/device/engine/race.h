// SPDX-License-Identifier: Apache-2.0
// Data races in one memory: for each piece of it, the last write and the reads since.
//
// Two accesses race when they touch the same piece, one of them writes, not both are atomic, and neither
// happened before the other. Threads of one block are ordered by `Clocks`; threads of different blocks only by
// what raises the generation (a new launch, a barrier of the grid).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/engine/clocks.h"

namespace uir::engine {

/*! \brief Who accesses memory. */
struct Accessor {
  const Clocks* clocks;
  uint32_t thread;      // of the block, below 1024
  uint32_t block;       // below 2^20
  uint32_t generation;  // 1 .. 4095
  uint32_t site;        // where in the text
};

/*! \brief The other side of a race. */
struct Race {
  bool found{false};
  bool other_writes{false};
  /*! \brief Block and thread of the other access; -1 where several blocks read. */
  int64_t block{-1};
  int64_t thread{-1};
  uint32_t site{0};
};

/*! \brief Last accesses of one memory. */
class RaceShadow {
 public:
  /*! \brief The widest access of one instruction: 16 bytes. */
  static constexpr int kWidestShift = 4;
  static constexpr uint32_t kMaxGeneration = 4095;
  static constexpr uint32_t kMaxBlocks = 1u << 20;

  /*! \brief Take a new size and forget everything; pieces of 2^shift bytes, until a narrower access is met. */
  void Resize(size_t bytes, int shift = kWidestShift);
  /*! \brief Pieces have 2^shift bytes now: what a memory with the same accesses may begin with. */
  int shift() const { return shift_; }
  /*! \brief Forget everything; needed before generations are used again. */
  void Clear() { Resize(bytes_, shift_); }

  /*! \brief Note an access to [offset, offset + count) and say whether it races. */
  Race Read(const Accessor& by, size_t offset, size_t count);
  Race Write(const Accessor& by, size_t offset, size_t count, bool atomic);

 private:
  // An epoch: generation 12 | block 20 | thread 10 | unused 20 | kind 2, and the thread's clock beside it: all of
  // its 32 bits, since an access whose time is not known exactly is in no known order. Kind of a write: plain,
  // atomic. Kind of reads: one thread; a list in readers_ (thread and unused bits hold its index); several blocks.
  enum Kind : uint64_t { kPlain = 0, kAtomic = 1, kList = 2, kBlocks = 3 };
  struct Cell {
    uint64_t write;
    uint64_t read;
    uint32_t write_site;
    uint32_t read_site;
    uint32_t write_clock;
    uint32_t read_clock;
  };
  /*! \brief Reads by threads of one cluster at one time of theirs. */
  struct Readers {
    uint32_t cluster;
    uint32_t lanes;
    uint32_t clock;
    uint32_t site;
    uint32_t next;
  };
  struct Free {
    void operator()(Cell* p) const { std::free(p); }
  };

  static uint64_t Pack(const Accessor& by, uint64_t kind);
  static uint32_t Generation(uint64_t epoch) { return static_cast<uint32_t>(epoch >> 52); }
  static uint32_t Block(uint64_t epoch) { return (epoch >> 32) & 0xfffff; }
  static uint32_t Thread(uint64_t epoch) { return (epoch >> 22) & 0x3ff; }
  static uint32_t Index(uint64_t epoch) { return (epoch >> 2) & 0x3fffffff; }
  static Kind KindOf(uint64_t epoch) { return static_cast<Kind>(epoch & 3); }

  void Prepare(const Accessor& by, size_t offset, size_t count);
  void Refine(int shift);
  void NoteRead(Cell* cell, const Accessor& by, uint64_t epoch);
  Race AgainstWrite(const Cell& cell, const Accessor& by) const;
  Race AgainstReads(const Cell& cell, const Accessor& by) const;
  uint32_t NewReaders(const Readers& readers);
  void FreeList(uint32_t first);
  void AddReader(Cell* cell, const Accessor& by);

  size_t bytes_{0};
  int shift_{kWidestShift};
  uint32_t generation_{0};
  std::unique_ptr<Cell[], Free> cells_;
  std::vector<Readers> readers_;
  uint32_t unused_{0};  // list of free entries of readers_; 0 ends it
};

}  // namespace uir::engine
