// SPDX-License-Identifier: Apache-2.0
#include "device/engine/race.h"

#include <algorithm>

namespace uir::engine {

void RaceShadow::Resize(size_t bytes, int shift) {
  bytes_ = bytes;
  shift_ = shift;
  generation_ = 0;
  cells_.reset();
  readers_.clear();
  unused_ = 0;
}

uint64_t RaceShadow::Pack(const Accessor& by, uint64_t kind) {
  return uint64_t{by.generation} << 52 | uint64_t{by.block} << 32 | uint64_t{by.thread} << 22 | kind;
}

void RaceShadow::Refine(int shift) {
  size_t old_count = (bytes_ >> shift_) + 1, count = (bytes_ >> shift) + 1;
  std::unique_ptr<Cell[], Free> cells(static_cast<Cell*>(std::calloc(count, sizeof(Cell))));
  size_t parts = size_t{1} << (shift_ - shift);
  for (size_t i = 0; i < old_count; ++i) {
    const Cell& old = cells_[i];
    if (Generation(old.write) != generation_ && Generation(old.read) != generation_) continue;
    for (size_t j = i * parts; j < (i + 1) * parts && j < count; ++j) {
      cells[j] = old;
      if (KindOf(old.read) != kList || Generation(old.read) != generation_ || j == i * parts) continue;
      // Every piece owns its list.
      uint32_t first = 0;
      for (uint32_t at = Index(old.read); at; at = readers_[at].next) {
        Readers copy = readers_[at];
        copy.next = first;
        first = NewReaders(copy);
      }
      cells[j].read = (old.read & ~(uint64_t{0x3fffffff} << 2)) | uint64_t{first} << 2;
    }
  }
  cells_ = std::move(cells);
  shift_ = shift;
}

void RaceShadow::Prepare(const Accessor& by, size_t offset, size_t count) {
  if (!cells_) cells_.reset(static_cast<Cell*>(std::calloc((bytes_ >> shift_) + 1, sizeof(Cell))));
  if (generation_ != by.generation) {
    generation_ = by.generation;
    readers_.assign(1, Readers{});
    unused_ = 0;
  }
  size_t narrow = offset | count;
  if (narrow & ((size_t{1} << shift_) - 1)) Refine(__builtin_ctzll(narrow));
}

uint32_t RaceShadow::NewReaders(const Readers& readers) {
  if (unused_) {
    uint32_t at = unused_;
    unused_ = readers_[at].next;
    readers_[at] = readers;
    return at;
  }
  readers_.push_back(readers);
  return static_cast<uint32_t>(readers_.size() - 1);
}

void RaceShadow::FreeList(uint32_t first) {
  while (first) {
    uint32_t next = readers_[first].next;
    readers_[first].next = unused_;
    unused_ = first;
    first = next;
  }
}

Race RaceShadow::AgainstWrite(const Cell& cell, const Accessor& by) const {
  Race race;
  if (Generation(cell.write) != by.generation) return race;
  uint32_t block = Block(cell.write), thread = Thread(cell.write);
  if (block == by.block && by.clocks->Ordered(by.thread, thread, cell.write_clock)) return race;
  race.found = race.other_writes = true;
  race.block = block;
  race.thread = thread;
  race.site = cell.write_site;
  return race;
}

Race RaceShadow::AgainstReads(const Cell& cell, const Accessor& by) const {
  Race race;
  if (Generation(cell.read) != by.generation) return race;
  auto raced = [&](int64_t block, int64_t thread, uint32_t site) {
    race.found = true;
    race.block = block;
    race.thread = thread;
    race.site = site;
    return race;
  };
  if (KindOf(cell.read) == kBlocks) return raced(-1, -1, cell.read_site);
  uint32_t block = Block(cell.read);
  if (KindOf(cell.read) == kList) {
    for (uint32_t at = Index(cell.read); at; at = readers_[at].next) {
      const Readers& readers = readers_[at];
      for (uint32_t lanes = readers.lanes; lanes; lanes &= lanes - 1) {
        uint32_t thread = readers.cluster * Clocks::kCluster + static_cast<uint32_t>(__builtin_ctz(lanes));
        if (block == by.block && by.clocks->Ordered(by.thread, thread, readers.clock)) continue;
        return raced(block, thread, readers.site);
      }
    }
    return race;
  }
  uint32_t thread = Thread(cell.read);
  if (block == by.block && by.clocks->Ordered(by.thread, thread, cell.read_clock)) return race;
  return raced(block, thread, cell.read_site);
}

void RaceShadow::AddReader(Cell* cell, const Accessor& by) {
  uint32_t cluster = by.thread / Clocks::kCluster, lane = 1u << by.thread % Clocks::kCluster;
  uint32_t clock = by.clocks->Now(by.thread);
  uint32_t first = Index(cell->read);
  for (uint32_t at = first; at; at = readers_[at].next) {
    Readers& readers = readers_[at];
    if (readers.cluster == cluster && readers.clock == clock) {
      readers.lanes |= lane;
      return;
    }
  }
  // A reader that happened before this one needs no entry: a write that this one precedes it precedes too.
  uint32_t kept = 0;
  for (uint32_t at = first; at;) {
    Readers& readers = readers_[at];
    uint32_t next = readers.next;
    for (uint32_t lanes = readers.lanes; lanes; lanes &= lanes - 1) {
      uint32_t bit = static_cast<uint32_t>(__builtin_ctz(lanes));
      if (by.clocks->Ordered(by.thread, readers.cluster * Clocks::kCluster + bit, readers.clock)) {
        readers.lanes &= ~(1u << bit);
      }
    }
    if (readers.lanes) {
      readers.next = kept;
      kept = at;
    } else {
      readers.next = unused_;
      unused_ = at;
    }
    at = next;
  }
  first = NewReaders({cluster, lane, clock, by.site, kept});
  cell->read = (cell->read & ~(uint64_t{0x3fffffff} << 2)) | uint64_t{first} << 2;
}

void RaceShadow::NoteRead(Cell* cell, const Accessor& by, uint64_t epoch) {
  uint64_t last = cell->read;
  uint32_t now = by.clocks->Now(by.thread);
  if (last == epoch && cell->read_clock == now) return;
  if (Generation(last) == by.generation) {
    if (KindOf(last) == kBlocks) return;
    if (Block(last) != by.block) {
      if (KindOf(last) == kList) FreeList(Index(last));
      cell->read = epoch | kBlocks;
      cell->read_site = by.site;
      return;
    }
    if (KindOf(last) == kList) return AddReader(cell, by);
    uint32_t thread = Thread(last), clock = cell->read_clock;
    if (!by.clocks->Ordered(by.thread, thread, clock)) {
      Readers other{thread / Clocks::kCluster, 1u << thread % Clocks::kCluster, clock, cell->read_site, 0};
      uint32_t first = NewReaders(other);
      cell->read = (last & ~uint64_t{0xffffffff}) | uint64_t{first} << 2 | kList;
      return AddReader(cell, by);
    }
  }
  cell->read = epoch;
  cell->read_clock = now;
  cell->read_site = by.site;
}

Race RaceShadow::Read(const Accessor& by, size_t offset, size_t count) {
  Prepare(by, offset, count);
  uint64_t epoch = Pack(by, kPlain);
  Race race;
  for (size_t i = offset >> shift_, end = (offset + count - 1) >> shift_; i <= end; ++i) {
    Cell& cell = cells_[i];
    if (!race.found) race = AgainstWrite(cell, by);
    NoteRead(&cell, by, epoch);
  }
  return race;
}

Race RaceShadow::Write(const Accessor& by, size_t offset, size_t count, bool atomic) {
  Prepare(by, offset, count);
  uint64_t epoch = Pack(by, atomic ? kAtomic : kPlain);
  Race race;
  for (size_t i = offset >> shift_, end = (offset + count - 1) >> shift_; i <= end; ++i) {
    Cell& cell = cells_[i];
    if (!race.found && !(atomic && KindOf(cell.write) == kAtomic)) race = AgainstWrite(cell, by);
    if (!race.found) race = AgainstReads(cell, by);
    if (Generation(cell.read) == by.generation && KindOf(cell.read) == kList) FreeList(Index(cell.read));
    cell.read = 0;
    cell.write = epoch;
    cell.write_clock = by.clocks->Now(by.thread);
    cell.write_site = by.site;
  }
  return race;
}

}  // namespace uir::engine
