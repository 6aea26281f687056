// SPDX-License-Identifier: Apache-2.0
#include "device/engine/pipe_race.h"

#include <algorithm>

namespace uir::engine {

void PipeShadow::Prepare(size_t offset, size_t count) {
  if (!cells_) cells_.reset(static_cast<Cell*>(std::calloc((bytes_ >> shift_) + 1, sizeof(Cell))));
  size_t narrow = offset | count;
  if (!(narrow & ((size_t{1} << shift_) - 1))) return;
  int shift = __builtin_ctzll(narrow);
  size_t old_count = (bytes_ >> shift_) + 1, new_count = (bytes_ >> shift) + 1, parts = size_t{1} << (shift_ - shift);
  std::unique_ptr<Cell[], Free> cells(static_cast<Cell*>(std::calloc(new_count, sizeof(Cell))));
  for (size_t i = 0; i < old_count; ++i) {
    if (!cells_[i].write && !cells_[i].read) continue;
    for (size_t j = i * parts; j < (i + 1) * parts && j < new_count; ++j) cells[j] = cells_[i];
  }
  cells_ = std::move(cells);
  shift_ = shift;
}

uint64_t PipeShadow::Unordered(const Pipes& pipes, uint32_t pipe, uint64_t reads) const {
  if (!reads) return 0;
  if (!(reads & kSet)) return pipes.Ordered(pipe, reads) ? 0 : reads;
  for (uint64_t epoch : sets_[reads & ~kSet]) {
    if (!pipes.Ordered(pipe, epoch)) return epoch;
  }
  return 0;
}

uint64_t PipeShadow::WithRead(const Pipes& pipes, uint64_t reads, uint64_t epoch) {
  // A read that ended before this one needs no place: a write after this one comes after it too. Of one pipe the last
  // stands for all, since what is known of a pipe is always a beginning of its instructions.
  uint32_t pipe = Epoch::Pipe(epoch);
  auto covered = [&](uint64_t old) { return Epoch::Actor(old) == Epoch::Actor(epoch) || pipes.Ordered(pipe, old); };
  if (!reads || (!(reads & kSet) && covered(reads))) return epoch;
  std::vector<uint64_t> kept;
  if (reads & kSet) {
    for (uint64_t old : sets_[reads & ~kSet]) {
      if (!covered(old)) kept.push_back(old);
    }
  } else {
    kept.push_back(reads);
  }
  if (kept.empty()) return epoch;
  kept.push_back(epoch);
  sets_.push_back(std::move(kept));
  return kSet | (sets_.size() - 1);
}

uint64_t PipeShadow::Read(const Pipes& pipes, uint64_t epoch, size_t offset, size_t count) {
  if (!count) return 0;
  Prepare(offset, count);
  uint32_t pipe = Epoch::Pipe(epoch);
  uint64_t race = 0, last_write = 0, last_reads = 0, last_result = epoch;
  for (size_t i = offset >> shift_, end = (offset + count - 1) >> shift_; i <= end; ++i) {
    Cell& cell = cells_[i];
    // Neighbours mostly have the same state, which is then judged once.
    if (cell.write != last_write) {
      last_write = cell.write;
      if (!race && last_write && !pipes.Ordered(pipe, last_write)) race = last_write;
    }
    if (cell.read != last_reads) {
      last_reads = cell.read;
      last_result = WithRead(pipes, last_reads, epoch);
    }
    cell.read = last_result;
  }
  return race;
}

uint64_t PipeShadow::Write(const Pipes& pipes, uint64_t epoch, size_t offset, size_t count) {
  if (!count) return 0;
  Prepare(offset, count);
  uint32_t pipe = Epoch::Pipe(epoch);
  uint64_t race = 0, last_write = 0, last_reads = 0;
  for (size_t i = offset >> shift_, end = (offset + count - 1) >> shift_; i <= end; ++i) {
    Cell& cell = cells_[i];
    // Reads first: they came after the write.
    if (cell.read != last_reads) {
      last_reads = cell.read;
      if (!race) race = Unordered(pipes, pipe, last_reads);
    }
    if (cell.write != last_write) {
      last_write = cell.write;
      if (!race && last_write && !pipes.Ordered(pipe, last_write)) race = last_write;
    }
    cell.read = 0;
    cell.write = epoch;
  }
  return race;
}

uint32_t PipeShadow::Last(uint64_t actor, size_t offset, size_t count, bool reads) const {
  uint32_t last = 0;
  if (!cells_ || !count) return last;
  auto note = [&](uint64_t epoch) {
    if (epoch && Epoch::Actor(epoch) == actor) last = std::max(last, Epoch::Number(epoch));
  };
  for (size_t i = offset >> shift_, end = (offset + count - 1) >> shift_; i <= end; ++i) {
    note(cells_[i].write);
    if (!reads) continue;
    if (cells_[i].read & kSet) {
      for (uint64_t epoch : sets_[cells_[i].read & ~kSet]) note(epoch);
    } else {
      note(cells_[i].read);
    }
  }
  return last;
}

}  // namespace uir::engine
