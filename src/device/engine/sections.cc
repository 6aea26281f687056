// SPDX-License-Identifier: Apache-2.0
#include "device/engine/sections.h"

#include <elf.h>

#include <fstream>
#include <vector>

namespace uir::engine {

namespace {

template <typename T>
bool ReadAt(std::ifstream* file, uint64_t offset, T* values, size_t count) {
  file->seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(
      file->read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(T))));
}

}  // namespace

Section FindSection(const std::string& path, uintptr_t base, const std::string& name) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file || !ReadAt(&file, 0, &header, 1) || !header.e_shnum || header.e_shstrndx >= header.e_shnum) return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!ReadAt(&file, header.e_shoff, sections.data(), sections.size())) return {};
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  std::vector<char> names(strings.sh_size + 1, 0);
  if (!ReadAt(&file, strings.sh_offset, names.data(), strings.sh_size)) return {};
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name < strings.sh_size && name == names.data() + section.sh_name) {
      return {reinterpret_cast<uint8_t*>(base + section.sh_addr), section.sh_size};
    }
  }
  return {};
}

}  // namespace uir::engine
