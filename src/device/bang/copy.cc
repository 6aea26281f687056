// SPDX-License-Identifier: Apache-2.0
// Copies between memories: which there are, what they take, and what they do.
//
// Ways, alignments and ranges are those of the tables at `__memcpy` in the vendor's header, for tp_322 and later.
#include <algorithm>
#include <cstring>
#include <string>

#include "device/bang/instruction.h"
#include "device/bang/wram.h"

namespace uir::bang {

using engine::Pipes;

namespace {

// What is possible only without, or only with, strides.
enum Way : char { kNo, kYes, kPlain, kStrided };

/*! \brief By source and target, in the order of the memories. */
constexpr Way kWays[kBangMemories][kBangMemories] = {
    // GDRAM, NRAM, WRAM, SRAM, LDRAM
    {kYes, kYes, kYes, kYes, kYes},         // GDRAM
    {kYes, kYes, kYes, kYes, kYes},         // NRAM
    {kPlain, kPlain, kNo, kPlain, kPlain},  // WRAM
    {kYes, kYes, kYes, kYes, kYes},         // SRAM
    {kYes, kYes, kPlain, kYes, kStrided},   // LDRAM
};

constexpr int64_t kMostSegments = 65536;

uint32_t PipeOf(const UirBangCopy& copy) {
  auto off_chip = [](uint32_t memory) { return memory == kBangGdram || memory == kBangLdram; };
  return off_chip(copy.src_memory) || off_chip(copy.dst_memory) ? uint32_t{kBangIo} : uint32_t{kBangMove};
}

std::string WayName(const UirBangCopy& copy) {
  return std::string(MemoryName(copy.src_memory)) + "2" + MemoryName(copy.dst_memory);
}

void CheckSegments(const char* side, const int64_t (&strides)[2], const int64_t (&segments)[2], const UirBangCopy& copy,
                   bool target, Instruction* instruction) {
  for (int i = 0; i < copy.dims - 1; ++i) {
    auto name = [&] { return "the " + std::string(side) + (copy.dims > 2 ? std::to_string(i) : ""); };
    instruction->Need(segments[i] >= 1 && segments[i] <= kMostSegments, "segments", [&] {
      return std::to_string(segments[i] - 1) + " is no number of further segments: 0 to 65535 are possible";
    });
    bool once = segments[i] == 1;
    // Segments that lie on each other lose what was written; reading the same bytes again is allowed without 3-D.
    if (target || copy.dims > 2) {
      int64_t distance = strides[i] < 0 ? -strides[i] : strides[i];
      bool zero = copy.dims > 2 && strides[i] == 0 && once;
      instruction->Need(zero || once || distance >= copy.bytes, "stride", [&] {
        return name() + " of " + std::to_string(strides[i]) + " bytes is less than the segment's " +
               std::to_string(copy.bytes);
      });
    } else {
      instruction->Need(strides[i] >= 0, "stride", [&] { return name() + " is " + std::to_string(strides[i]); });
    }
    if (target && copy.dst_memory == kBangWram) {
      instruction->Need(once || strides[i] % 8 == 0, "misaligned", [&] {
        return name() + " of " + std::to_string(strides[i]) + " bytes is no multiple of 8, as WRAM needs";
      });
    }
  }
}

void CheckAddress(const char* role, const void* address, uint32_t memory, int64_t alignment, Instruction* instruction) {
  const engine::Section& section = machine.sections[memory];
  if (!section.bytes) return;
  int64_t offset = static_cast<const uint8_t*>(address) - section.begin;
  if (offset % alignment == 0) return;
  instruction->Fault("misaligned",
                     std::string("the ") + role + " begins at byte " + std::to_string(offset) + " of " +
                         MemoryName(memory) + "; multiples of " + std::to_string(alignment) + " are needed",
                     memory);
}

void CheckLimits(const UirBangCopy& copy, Instruction* instruction) {
  Way way = kWays[copy.src_memory][copy.dst_memory];
  bool strided = copy.dims > 1;
  if (way == kNo || (way == kPlain && strided) || (way == kStrided && !strided)) {
    return instruction->Fault("path",
                              "there is no copy " + WayName(copy) + (strided ? " with strides" : " without strides"));
  }
  instruction->Need(copy.bytes > 0, "size", [&] { return std::to_string(copy.bytes) + " bytes are copied"; });
  bool within = copy.src_memory == kBangNram && copy.dst_memory == kBangNram;
  bool early = machine.device.arch < 300;
  int64_t unit = strided ? 1 : within && early ? 128 : 1;
  instruction->Need(copy.bytes % unit == 0, "misaligned", [&] {
    return std::to_string(copy.bytes) + " bytes are no multiple of " + std::to_string(unit) + ", as " + WayName(copy) +
           " needs";
  });
  if (copy.src_memory == kBangWram) CheckAddress("source", copy.src, kBangWram, 8, instruction);
  if (copy.dst_memory == kBangWram) CheckAddress("target", copy.dst, kBangWram, 8, instruction);
  if (within && !strided) {
    CheckAddress("source", copy.src, kBangNram, 64, instruction);
    CheckAddress("target", copy.dst, kBangNram, 64, instruction);
  }
  instruction->Need(copy.dims < 3 || machine.device.arch >= 322, "arch",
                    "this architecture has no copies in three dimensions");
  bool between = copy.src_memory == kBangSram && copy.dst_memory == kBangSram;
  instruction->Need(
      between == (copy.cluster >= 0), "path",
      between ? "SRAM2SRAM needs the target's cluster" : "a cluster is given, which SRAM2SRAM alone takes");
  if (between && copy.cluster >= 0) {
    instruction->Need(copy.cluster == 0, "path", [&] {
      return "cluster " + std::to_string(copy.cluster) + ": a Union1 launch has no other cluster";
    });
  }
  CheckSegments("target's stride", copy.dst_stride, copy.dst_segments, copy, true, instruction);
  CheckSegments("source's stride", copy.src_stride, copy.src_segments, copy, false, instruction);
  instruction->Need(copy.dst_segments[0] * copy.dst_segments[1] == copy.src_segments[0] * copy.src_segments[1],
                    "segments", "source and target have different numbers of segments");
}

/*! \brief One side of a copy. */
struct Side {
  const int64_t (&strides)[2];
  const int64_t (&segments)[2];
  int64_t bytes;

  /*! \brief Add all segments. */
  void AddTo(Ranges* ranges) const {
    for (int64_t outer = 0; outer < segments[1]; ++outer) {
      for (int64_t i = 0; i < segments[0]; ++i) ranges->Add(outer * strides[1] + i * strides[0], bytes);
    }
  }
  /*! \brief All bytes from the first segment's first to the last one's last. */
  Range Hull() const {
    int64_t first = 0, last = 0;
    for (int i = 0; i < 2; ++i) {
      int64_t reach = (segments[i] - 1) * strides[i];
      first += std::min<int64_t>(reach, 0);
      last += std::max<int64_t>(reach, 0);
    }
    return {first, last + bytes - first};
  }
};

//! \brief Add the segments of both sides.
//!
//! On the chip, where nothing is to take effect, what lies between segments matters to overlaps alone.
void AddSegments(const UirBangCopy& copy, Operand* source, Operand* target) {
  const Side from{copy.src_stride, copy.src_segments, copy.bytes}, to{copy.dst_stride, copy.dst_segments, copy.bytes};
  const Range read = from.Hull(), written = to.Hull();
  const uint8_t *src = source->data + read.begin, *dst = target->data + written.begin;
  const bool meet = copy.src_memory == copy.dst_memory && src < dst + written.bytes && dst < src + read.bytes;
  const auto add = [&](const Side& side, const Range& hull, uint32_t memory, Ranges* ranges) {
    if (machine.values || meet || memory == kBangGdram) return side.AddTo(ranges);
    ranges->Add(hull.begin, hull.bytes);
  };
  add(from, read, copy.src_memory, &source->ranges);
  add(to, written, copy.dst_memory, &target->ranges);
}

/*! \brief Where segment i of a side lies. */
int64_t SegmentAt(const int64_t (&strides)[2], const int64_t (&segments)[2], int64_t i) {
  return i % segments[0] * strides[0] + i / segments[0] * strides[1];
}

/*! \brief Source and target may be the same bytes, or have none in common. */
void CheckOverlap(const UirBangCopy& copy, const Operand& source, const Operand& target, Instruction* instruction) {
  if (copy.src_memory != copy.dst_memory) return;
  const uint8_t *src = source.data + source.ranges.Begin(), *src_end = source.data + source.ranges.End();
  const uint8_t *dst = target.data + target.ranges.Begin(), *dst_end = target.data + target.ranges.End();
  if (src_end <= dst || dst_end <= src) return;
  bool same = copy.dst == copy.src && copy.dims == 1;
  if (same) return;
  // Spans meet: segments may still lie between each other.
  for (const Range& a : source.ranges.list()) {
    for (const Range& b : target.ranges.list()) {
      const uint8_t *from = source.data + a.begin, *to = target.data + b.begin;
      if (from + a.bytes <= to || to + b.bytes <= from) continue;
      return instruction->Fault("overlap", "source and target share bytes", copy.dst_memory);
    }
  }
}

void Move(const UirBangCopy& copy, const Operand& source, const Operand& target, int64_t segments,
          Instruction* instruction) {
  auto bytes = static_cast<size_t>(copy.bytes);
  bool unknown = false;
  for (int64_t i = 0; i < segments; ++i) {
    int64_t from = SegmentAt(copy.src_stride, copy.src_segments, i),
            to = SegmentAt(copy.dst_stride, copy.dst_segments, i);
    std::memmove(target.data + to, source.data + from, bytes);
    bool known = source.Knows(from, copy.bytes);
    if (known) {
      target.Learn(to, copy.bytes);
    } else if (target.known && source.known) {
      std::memmove(target.known + to, source.known + from, bytes);
    } else if (target.known) {
      for (int64_t at = 0; at < copy.bytes; ++at) target.Learn(to + at, 1, source.Knows(from + at, 1));
    } else {
      unknown = true;
      target.Learn(to, copy.bytes);
    }
  }
  if (unknown) instruction->Fault("unwritten", "stores bytes that hold no value that somebody wrote", copy.src_memory);
}

/*! \brief Whether the core that runs makes the copy: the memory core those of SRAM with global memory, IPUs others. */
bool IsMine(const UirBangCopy& copy, int line) {
  auto sram = [](uint32_t memory) { return memory == kBangSram; };
  auto outside = [](uint32_t memory) { return memory == kBangGdram || memory == kBangLdram || memory == kBangSram; };
  bool of_cluster =
      (sram(copy.src_memory) && outside(copy.dst_memory)) || (sram(copy.dst_memory) && outside(copy.src_memory));
  Core& core = *machine.core;
  if (!machine.union_launch()) return true;  // a fault, which the operands find
  if (of_cluster) ++core.cluster_copies[line];
  return core.memory_core == of_cluster;
}

}  // namespace

void RunCopy(const UirBangCopy& given, int line) {
  if (!IsMine(given, line)) return;
  UirBangCopy copy = given;
  Instruction instruction("", copy.name, PipeOf(copy), line);
  Pipes& pipes = machine.core->pipes;
  if (!copy.asynchronous) {
    for (uint32_t pipe = 1; pipe < kBangPipes; ++pipe) pipes.Acquire(Pipes::kScalar, pipes.Publish(pipe));
  }
  CheckLimits(copy, &instruction);
  if (instruction.faulty()) return;
  if (copy.src_memory == kBangWram || copy.dst_memory == kBangWram) copy = InRanges(copy, &instruction);
  if (instruction.faulty()) return;
  Operand& source = instruction.Reads(copy.src, copy.src_memory, "source");
  Operand& target = instruction.Writes(copy.dst, copy.dst_memory, "target");
  int64_t segments = copy.dst_segments[0] * copy.dst_segments[1];
  AddSegments(copy, &source, &target);
  CheckOverlap(copy, source, target, &instruction);
  if (instruction.faulty() || !instruction.Begin()) return;
  if (machine.values) Move(copy, source, target, segments, &instruction);
  ++machine.counters["copies"];
  if (copy.src_memory == kBangGdram) machine.counters["gdram_bytes_read"] += segments * copy.bytes;
  if (copy.dst_memory == kBangGdram) machine.counters["gdram_bytes_written"] += segments * copy.bytes;
  if (instruction.pipe() == kBangIo) {
    instruction.EndTransfer(copy.src_memory == kBangGdram ? source : target, segments);
    bool both = copy.src_memory == kBangGdram && copy.dst_memory == kBangGdram;
    if (both) instruction.EndTransfer(target, segments);  // the memory is written as well
  } else {
    const PipeCost& cost = machine.device.pipes[kBangMove];
    double cycles = cost.bytes_per_cycle > 0 ? static_cast<double>(segments * copy.bytes) / cost.bytes_per_cycle : 0;
    instruction.End(cycles + static_cast<double>(segments - 1) * cost.row, cost.start, segments * copy.bytes);
  }
  if (!copy.asynchronous) pipes.Acquire(Pipes::kScalar, pipes.Publish(instruction.pipe()));
}

}  // namespace uir::bang

extern "C" void uir_bang_copy(const UirBangCopy* copy, int line) {
  if (uir::bang::machine.core) uir::bang::RunCopy(*copy, line);
}
