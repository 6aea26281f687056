// SPDX-License-Identifier: Apache-2.0
// What all instructions share: operands with the bytes that they touch, checks, order, time.
//
// An instruction says what it reads and writes, and `Begin` judges it: where its operands lie and what they are not
// ordered with. It answers whether the instruction may take effect. `End` counts its time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/bang/machine.h"

namespace uir::bang {

/*! \brief Memory that an instruction reads or writes. */
struct Operand {
  uint8_t* data;
  const char* role;
  bool write;
  /*! \brief Where the function takes it. */
  uint32_t memory;
  Ranges ranges;
  /*! \brief The known bits of its first byte; of global memory null. */
  uint8_t* known{nullptr};
  engine::Allocation* allocation{nullptr};
  engine::PipeShadow* shadow{nullptr};
  /*! \brief Where its first byte lies in the memory that the shadow is of. */
  uint64_t base{0};

  /*! \brief Whether all bytes at an offset hold values that somebody wrote. */
  bool Knows(int64_t at, int64_t bytes) const;
  /*! \brief Bytes at an offset hold a value now, or one that nobody knows. */
  void Learn(int64_t at, int64_t bytes, bool value = true) const;
};

/*! \brief One instruction on its way. */
class Instruction {
 public:
  /*! \brief `prefix` and `name` together are how the text calls it. */
  Instruction(const char* prefix, const char* name, uint32_t pipe, int line)
      : prefix_(prefix), name_(name), pipe_(pipe), line_(line) {
    operands_.reserve(8);
  }

  /*! \brief An operand; the reference holds until the instruction ends. At most eight. */
  Operand& Reads(const void* address, uint32_t memory, const char* role) { return Add(address, memory, role, false); }
  Operand& Writes(const void* address, uint32_t memory, const char* role) { return Add(address, memory, role, true); }

  /*! \brief Report a fault of this instruction; it takes no effect then. */
  void Fault(const char* kind, const std::string& what, uint32_t memory = kBangMemories);
  /*! \brief A fault unless the condition holds. */
  void Need(bool condition, const char* kind, const std::string& what) {
    if (!condition) Fault(kind, what);
  }
  /*! \brief A fault unless the condition holds; `what` makes its text, which most instructions never need. */
  template <typename Text>
  auto Need(bool condition, const char* kind, const Text& what) -> decltype(static_cast<void>(what())) {
    if (!condition) Fault(kind, what());
  }
  bool faulty() const { return faulty_; }

  /*! \brief Judge the operands. Whether the instruction may go on. */
  bool Begin();
  /*! \brief Count its time: cycles in which the queue does nothing else, and after those until it has taken effect. */
  void End(double cycles, double latency, int64_t bytes = 0);
  /*! \brief Count the time of a transfer with global memory, of so many segments. */
  void EndTransfer(const Operand& global, int64_t rows);

  std::string name() const { return std::string(prefix_) + name_; }
  uint32_t pipe() const { return pipe_; }
  int line() const { return line_; }

 private:
  Operand& Add(const void* address, uint32_t memory, const char* role, bool write);
  bool Place(Operand* operand);
  bool PlaceLocal(Operand* operand, const engine::Section& section);
  bool PlaceGlobal(Operand* operand);
  void Judge(const Operand& operand);
  double Start();
  void Occupy(double start, double busy, double next, double end, int64_t bytes);

  const char* prefix_;
  const char* name_;
  uint32_t pipe_;
  int line_;
  bool faulty_{false};
  uint64_t epoch_{0};
  std::vector<Operand> operands_;
};

}  // namespace uir::bang
