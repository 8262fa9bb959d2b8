// SPDX-License-Identifier: Apache-2.0
// json_get FILE POINTER...: prints the values at these JSON pointers, one per line. Exits with 1 if
// the file is not JSON, which has no NaN and no infinity, or lacks a value.
#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  try {
    std::ifstream file(argv[1]);
    const nlohmann::json document = nlohmann::json::parse(file);
    for (int i = 2; i < argc; ++i) {
      const auto& value = document.at(nlohmann::json::json_pointer(argv[i]));
      std::puts((value.is_string() ? value.get<std::string>() : value.dump()).c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
    return 1;
  }
  return 0;
}
