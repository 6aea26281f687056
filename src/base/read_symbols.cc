// SPDX-License-Identifier: Apache-2.0
// Lets tvm-ffi read the symbols that it names frames by without those of libraries that raise none of its errors.
//
// It reads those of all libraries of the process when it first raises an error, which is while `import tvm` runs; those
// of PyTorch take most of that time, and memory for as long as the process lives.
#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <tvm/ffi/c_api.h>

#include <cstring>

namespace {

using Callback = int (*)(dl_phdr_info*, size_t, void*);
using Iterate = int (*)(Callback, void*);

/*! \brief Folders whose libraries are left out, and how many: set while `Passed` stands in for the C library's. */
const char* const* left_out = nullptr;
int num_left_out = 0;

/*! \brief Who asks for the libraries. */
struct Asking {
  Callback callback;
  void* data;
};

bool IsLeftOut(const char* path) {
  for (int i = 0; i < num_left_out; ++i) {
    if (path && std::strncmp(path, left_out[i], std::strlen(left_out[i])) == 0) return true;
  }
  return false;
}

int PassOn(dl_phdr_info* info, size_t size, void* data) {
  const auto* asking = static_cast<const Asking*>(data);
  return IsLeftOut(info->dlpi_name) ? 0 : asking->callback(info, size, asking->data);
}

/*! \brief dl_iterate_phdr without what is left out. */
int Passed(Callback callback, void* data) {
  Asking asking{callback, data};
  return dl_iterate_phdr(PassOn, &asking);
}

/*! \brief What is found of the library that a call leaves. */
struct Caller {
  ElfW(Addr) base;
  ElfW(Addr) slot;
  bool writable = false;
};

/*! \brief Whether the place of a call's address is one that may be written: not what is read-only once loaded. */
int SeeWhetherWritable(dl_phdr_info* info, size_t, void* data) {
  auto* caller = static_cast<Caller*>(data);
  if (info->dlpi_addr != caller->base) return 0;
  bool loaded = false, read_only = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
    bool inside = begin <= caller->slot && caller->slot + sizeof(void*) <= begin + part.p_memsz;
    loaded |= inside && part.p_type == PT_LOAD && (part.p_flags & PF_W);
    read_only |= inside && part.p_type == PT_GNU_RELRO;
  }
  caller->writable = loaded && !read_only;
  return 1;
}

/*! \brief Where a library keeps the address of a function that it calls; null where that may not be written. */
Iterate* SlotOf(void* library, const char* function) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return nullptr;
  ElfW(Addr) calls = 0, symbols = 0, names = 0;
  size_t bytes = 0, kind = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_JMPREL:
        calls = entry->d_un.d_ptr;
        break;
      case DT_PLTRELSZ:
        bytes = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        kind = entry->d_un.d_val;
        break;
      case DT_SYMTAB:
        symbols = entry->d_un.d_ptr;
        break;
      case DT_STRTAB:
        names = entry->d_un.d_ptr;
        break;
    }
  }
  if (kind != DT_RELA || !calls || !symbols || !names) return nullptr;
  const auto* table = reinterpret_cast<const ElfW(Sym)*>(symbols);
  const auto* entries = reinterpret_cast<const ElfW(Rela)*>(calls);
  for (size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Sym) & symbol = table[ELF64_R_SYM(entries[i].r_info)];
    if (std::strcmp(reinterpret_cast<const char*>(names) + symbol.st_name, function) != 0) continue;
    Caller caller{map->l_addr, map->l_addr + entries[i].r_offset};
    dl_iterate_phdr(SeeWhetherWritable, &caller);
    return caller.writable ? reinterpret_cast<Iterate*>(caller.slot) : nullptr;
  }
  return nullptr;
}

}  // namespace

/*!
 * \brief Let tvm-ffi read symbols now, without those of libraries in some folders.
 * \param ffi What dlopen gave for tvm-ffi's library.
 * \param folders What the paths of libraries that are left out begin with.
 * \param count How many folders there are.
 * \return Whether it was done; not where the library's calls cannot be led elsewhere.
 */
extern "C" int UIRReadSymbols(void* ffi, const char* const* folders, int count) {
  Iterate* slot = sizeof(void*) == 8 ? SlotOf(ffi, "dl_iterate_phdr") : nullptr;
  auto backtrace = reinterpret_cast<decltype(&TVMFFIBacktrace)>(dlsym(ffi, "TVMFFIBacktrace"));
  if (!slot || !backtrace) return 0;
  Iterate own = *slot;
  left_out = folders;
  num_left_out = count;
  *slot = Passed;
  backtrace(nullptr, 0, nullptr, 1);
  *slot = own;
  left_out = nullptr;
  num_left_out = 0;
  return 1;
}
#endif
