// SPDX-License-Identifier: Apache-2.0
#include "device/bang/call.h"

#include <map>
#include <set>

namespace uir::bang {

namespace {

constexpr int64_t kFirstBfloat16 = 500;
constexpr int64_t kFirstFree = 300;  // from here on addresses and counts of vectors are free

/*! \brief Functions that came with 322, by the requirements in the vendor's header; so did conversions to `int`. */
const std::set<std::string>& Later() {
  static const auto* names =
      new std::set<std::string>{"fusion", "sqrt", "rsqrt", "recip",  "pow2",   "log",         "log2",       "sin",
                                "cos",    "div",  "floor", "argmax", "argmin", "nan_maximum", "nan_minimum"};
  return *names;
}

/*! \brief Whether an architecture has a function. */
bool Has(const std::string& name, int64_t arch) {
  if (name == "div" && arch == 372) return false;
  bool later = name.rfind("float2int", 0) == 0 || name.find("bfloat16") != std::string::npos;
  return arch >= 322 || !(later || Later().count(name));
}

/*! \brief Earlier architectures work on whole 128 bytes. */
void CheckBytes(int64_t bytes, Instruction* instruction) {
  if (machine.device.arch >= kFirstFree) return;
  instruction->Need(bytes % 128 == 0, "size",
                    std::to_string(bytes) + " bytes are no multiple of 128, as architecture " +
                        std::to_string(machine.device.arch) + " needs");
}

/*! \brief The function of a name; names are looked up in all families once. */
Handler HandlerOf(const std::string& name) {
  static auto* known = new std::map<std::string, Handler>();
  auto found = known->find(name);
  if (found != known->end()) return found->second;
  Handler handler = nullptr;
  for (auto family :
       {ElementwiseOf, FillOf, ConversionHandlerOf, LayoutOf, MatmulOf, ReduceOf, SelectOf, ApproximateOf}) {
    if (!handler) handler = family(name);
  }
  (*known)[name] = handler;
  return handler;
}

void CheckArchitecture(const UirBangCall& call, Instruction* instruction) {
  int64_t arch = machine.device.arch;
  std::string where = " on architecture " + std::to_string(arch);
  instruction->Need(Has(call.name, arch), "arch", "there is no such function" + where);
  // Conversions are older than arithmetic.
  bool converts = std::string(call.name).find("bfloat16") != std::string::npos;
  for (int i = 0; i < call.operands; ++i) {
    const UirBangOperand& operand = call.operand[i];
    instruction->Need(operand.type != kBangBfloat16 || arch >= kFirstBfloat16 || converts, "arch",
                      "there is no arithmetic of bfloat16_t" + where);
    if (operand.scalar || arch >= kFirstFree) continue;
    auto offset = static_cast<const uint8_t*>(operand.address) - machine.sections[kBangNram].begin;
    instruction->Need(offset % 64 == 0, "misaligned", "operands begin at multiples of 64 bytes" + where);
  }
}

double Run(const UirBangCall& call, int line) {
  if (!machine.core || machine.core->memory_core) return 0;  // a memory core has no vector unit
  Instruction instruction(std::string("__bang_") + call.name, kBangCompute, line);
  double value = 0;
  Handler handler = HandlerOf(call.name);
  if (!handler) {
    instruction.Fault("function", "the model does not have it");
    return 0;
  }
  CheckArchitecture(call, &instruction);
  if (instruction.faulty()) return 0;
  handler({call, instruction, &value});
  return value;
}

}  // namespace

bool Given::Positive(int64_t count, const char* what) const {
  instruction.Need(count > 0, "size", std::string(what) + " is " + std::to_string(count));
  return count > 0;
}

Operand& Given::Source(int i, const char* role, int64_t bytes) const {
  CheckBytes(bytes, &instruction);
  Operand& operand = instruction.Reads(of(i).address, kBangNram, role);
  operand.ranges.Add(0, bytes);
  return operand;
}

Operand& Given::Target(int64_t bytes) const {
  Operand& operand = instruction.Writes(of(0).address, kBangNram, "target");
  operand.ranges.Add(0, bytes);
  return operand;
}

void Given::NeedApart(const Operand& target, const Operand& source, bool same) const {
  const uint8_t *begin = source.data + source.ranges.Begin(), *end = source.data + source.ranges.End();
  if (target.data + target.ranges.End() <= begin || end <= target.data + target.ranges.Begin()) return;
  bool equal = target.data == source.data && target.ranges.End() == source.ranges.End();
  instruction.Need(
      same && equal, "overlap",
      std::string("the target and the ") + source.role + " share bytes" + (same ? " without being the same" : ""));
}

void Given::End(int64_t bytes) const {
  const Device& device = machine.device;
  // The cost of a function's family: without its form.
  std::string family = name();
  for (const char* prefix : {"cycle_"}) {
    if (family.rfind(prefix, 0) == 0) family.erase(0, std::string(prefix).size());
  }
  size_t scalar = family.rfind("_scalar");
  if (scalar != std::string::npos) family.erase(scalar);
  double cycles = device.CyclesOf(family, bytes);
  instruction.End(cycles + (device.timed ? device.start : 0), 0, bytes);
}

}  // namespace uir::bang

extern "C" {

void uir_bang_call(const UirBangCall* call, int line) { uir::bang::Run(*call, line); }
double uir_bang_value(const UirBangCall* call, int line) { return uir::bang::Run(*call, line); }

}  // extern "C"
