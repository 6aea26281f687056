// SPDX-License-Identifier: Apache-2.0
#include "runtime/timed_model.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/attrs.h"
#include "runtime/model_result.h"
#include "runtime/modelled.h"

namespace uir::runtime {

namespace json = ffi::json;

namespace {

/*! \brief Whether a function gives whole numbers alone. */
bool GivesWholeNumbers(const KernelSpec& spec) {
  return std::none_of(spec.params.begin(), spec.params.end(),
                      [](const ParameterSpec& param) { return param.role != "in" && param.floating; });
}

/*! \brief What a launch is given, as it stands in memory. */
class Memories {
 public:
  Memories(const KernelSpec& spec, const LaunchSpec& launch, const CallArguments& call)
      : spec_(spec), launch_(launch), call_(call) {}

  /*! \brief Whether any of what it may read stands for values that nobody computed. */
  bool ReadsStandIns() const {
    return std::any_of(launch_.arguments.begin(), launch_.arguments.end(), [this](int position) {
      const auto k = static_cast<size_t>(position);
      return RoleOf(k) != "out" && call_.bytes[k] > 0 &&
             uir_simt_stands_in(call_.pointers[k], static_cast<size_t>(call_.bytes[k])) != 0;
    });
  }

  /*! \brief Say whether what it wrote is such. */
  void SetStandIns(bool stand_in) const {
    EachWritten([stand_in](size_t, void* at, size_t bytes) { uir_simt_set_stand_in(at, bytes, stand_in); });
  }

  /*! \brief Zeros in place of what it was to write; what it was to change stays. */
  void LeaveZeros() const {
    EachWritten([this](size_t k, void* at, size_t bytes) {
      if (RoleOf(k) != "inout") std::memset(at, 0, bytes);
      uir_simt_mark_written(at, bytes);
    });
  }

 private:
  std::string RoleOf(size_t k) const { return k < spec_.params.size() ? spec_.params[k].role : "workspace"; }

  template <typename F>
  void EachWritten(F&& apply) const {
    for (int position : launch_.arguments) {
      const auto k = static_cast<size_t>(position);
      if (RoleOf(k) != "in" && call_.bytes[k] > 0) {
        apply(k, call_.pointers[k], static_cast<size_t>(call_.bytes[k]));
      }
    }
  }

  const KernelSpec& spec_;
  const LaunchSpec& launch_;
  const CallArguments& call_;
};

}  // namespace

void TimedModelExecutor::Launch(int, const CallArguments& call) {
  Asked asked;
  bool wanted = modelled::Wanted(&asked.timeline);
  asked.times_only = !modelled::Values() && !GivesWholeNumbers(spec_);
  const std::string& library = binaries_.FileOf(arch_);
  for (size_t k = 0; k < spec_.launches.size(); ++k) {
    const LaunchSpec& launch = spec_.launches[k];
    if (call.blocks[k] == 0) continue;
    CheckInterrupted();
    std::vector<UirSimtArg> arguments = ModelArguments<UirSimtArg>(spec_, launch, call);
    char* text = nullptr;
    int status = Ask(launch, call.blocks[k], library.c_str(), arguments, spec_.device.c_str(), asked, &text);
    std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
    json::Object result = ModelResult(status, launch, text ? text : "{}", binaries_.source());
    const bool computed = AttrOr(result, "computed", true), looked = AttrOr(result, "looked", false);
    const Memories memories(spec_, launch, call);
    const bool stand_ins = memories.ReadsStandIns();
    if (!computed) memories.LeaveZeros();
    memories.SetStandIns(!computed || stand_ins);
    auto times = result.find(ffi::String("modelled"));
    if (!wanted || times == result.end()) continue;
    json::Object note = (*times).second.cast<json::Object>();
    note.Set(ffi::String("computed"), computed);
    note.Set(ffi::String("assumed"), looked && stand_ins && !modelled::Values());
    modelled::Note(spec_.entry, launch.name, note);
  }
}

}  // namespace uir::runtime
