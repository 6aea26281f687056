// SPDX-License-Identifier: Apache-2.0
// Find a kernel in a shared object, bring its arguments into the engine's memory, and call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace uir::engine {

/*! \brief A loaded library: kept until `UnloadModule`, as kernels are launched again and again. */
struct Module {
  void* handle{nullptr};
  uintptr_t begin{0};
  uintptr_t end{0};
};

/*! \brief The library of a file, loaded at its first use; null with a reason. The caller holds `LaunchLock`. */
const Module* LoadModule(const std::string& path, std::string* error);

/*! \brief Forget the library of a file, if it is loaded: before the file goes. The caller holds `LaunchLock`. */
void UnloadModule(const std::string& path);

/*! \brief Bytes of global memory that a parameter stands for. */
struct ParameterRange {
  uintptr_t begin, end;
  std::string name;
};

/*! \brief One argument as a launch gets it. */
struct Argument {
  void* value;
  /*! \brief Bytes at a pointer; 0: memory of the engine; less: an integer. */
  int64_t bytes;
  const char* name;
};

/*! \brief The arguments of one launch. Those that lie elsewhere are copied into the engine's memory for it. */
class Arguments {
 public:
  /*! \brief Most that a kernel takes. */
  static constexpr size_t kMost = 64;

  /*! \brief Take the next argument; false with a reason. */
  bool Add(const Argument& argument, std::string* error);
  /*! \brief Copy back what was copied in, and release it. */
  void Return();

  /*! \brief kMost integers: all kernels are called with as many as the widest call has. */
  std::vector<uint64_t> values = std::vector<uint64_t>(kMost, 0);
  /*! \brief What the pointers may reach; empty where one of them is bounded by its allocation alone. */
  std::vector<ParameterRange> Ranges() const { return all_sized_ ? ranges_ : std::vector<ParameterRange>(); }

 private:
  struct Copy {
    void* address;
    void* original;
    size_t bytes;
  };
  size_t count_{0};
  bool all_sized_{true};
  std::vector<ParameterRange> ranges_;
  std::vector<Copy> copies_;
};

/*! \brief Call a kernel whose parameters are all passed as 8-byte integers; surplus arguments do no harm. */
void CallKernel(void* kernel, const uint64_t* arguments, size_t count);

}  // namespace uir::engine
