// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/io/file_uses.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Returns the absolute path without symbolic links, as far as it exists.
fs::path without_links(const fs::path& path) {
  const fs::path whole = absolute_path(path), target = target_of_links(whole);
  std::error_code error;
  fs::path found = fs::weakly_canonical(target, error);
  if (error) found = target.lexically_normal();
  return found.has_filename() ? found : found.parent_path();  // "saves/" is "saves"
}

struct ResolvedUse {
  const FileUse& use;
  fs::path path;
};

bool are_one_file(const ResolvedUse& a, const ResolvedUse& b) {
  std::error_code unused;
  return a.path == b.path || fs::equivalent(a.path, b.path, unused);
}

bool has(const ResolvedUse& directory, const ResolvedUse& file) {
  const std::string name = file.path.lexically_relative(directory.path).string();
  return name == "." || (!name.empty() && !name.starts_with("..") && directory.use.owns(name));
}

/// `b` is written to.
void check_pair(const ResolvedUse& a, const ResolvedUse& b) {
  const auto reject = [](const FileUse& use, const FileUse& other) {
    throw ConfigError(use.key, use.path.string(), "must be another file than {}{} = {}",
                      other.owns ? "those of " : "", other.key, other.path.string());
  };
  if (a.use.owns && b.use.owns) return;
  if (a.use.owns) {
    if (has(a, b)) reject(b.use, a.use);
  } else if (b.use.owns) {
    if (has(b, a)) reject(a.use, b.use);
  } else if (are_one_file(a, b)) {
    reject(b.use, a.use);
  }
}

}  // namespace

void check_distinct(const std::vector<FileUse>& uses) {
  std::vector<ResolvedUse> all;
  for (const FileUse& use : uses)
    if (!use.path.empty()) all.push_back({use, without_links(use.path)});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].use.writes) continue;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (j < i || !all[j].use.writes) check_pair(all[j], all[i]);  // each pair once
  }
}

}  // namespace tessera
