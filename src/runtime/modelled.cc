// SPDX-License-Identifier: Apache-2.0
#include "runtime/modelled.h"

#include <tvm/ffi/reflection/registry.h>

#include <mutex>

namespace uir::runtime::modelled {

namespace json = ffi::json;

namespace {

struct Notes {
  std::mutex lock;
  bool wanted = false;
  bool timeline = false;
  bool values = true;
  bool library_computes = true;
  json::Array launches;
};

Notes& Global() {
  static Notes* notes = new Notes();
  return *notes;
}

/*! \brief Notes are taken from here on. */
void Begin(bool timeline, bool values, bool library_computes) {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  notes.wanted = true;
  notes.timeline = timeline;
  notes.values = values;
  notes.library_computes = library_computes;
  notes.launches = json::Array();
}

/*! \brief The notes as JSON, [{"entry", "kernel", "seconds", "bound", "pipes", ...}]; no more are taken. */
ffi::String End() {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  notes.wanted = false;
  notes.values = notes.library_computes = true;
  ffi::String text = json::Stringify(notes.launches);
  notes.launches = json::Array();
  return text;
}

}  // namespace

bool Wanted(bool* timeline) {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  *timeline = notes.wanted && notes.timeline;
  return notes.wanted;
}

bool Values() {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  return notes.values;
}

bool LibraryComputes() {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  return notes.library_computes;
}

void Note(const std::string& entry, const std::string& kernel, const json::Object& what) {
  Notes& notes = Global();
  std::lock_guard<std::mutex> guard(notes.lock);
  if (!notes.wanted) return;
  json::Object row;
  row.Set(ffi::String("entry"), ffi::String(entry));
  row.Set(ffi::String("kernel"), ffi::String(kernel));
  for (const auto& [key, value] : what) row.Set(key, value);
  notes.launches.push_back(row);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("uir.runtime.modelled.begin", &Begin).def("uir.runtime.modelled.end", &End);
}

}  // namespace uir::runtime::modelled
