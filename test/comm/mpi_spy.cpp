// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_spy.hpp"

#include <map>
#include <mutex>
#include <string>

#include "comm/mpi_functions.hpp"

namespace {

/// The watchdog's thread also calls MPI.
std::mutex mutex;

std::map<std::string, int, std::less<>>& counts() {
  static std::map<std::string, int, std::less<>> map;
  return map;
}

void count_call(const char* function) {
  const std::lock_guard lock(mutex);
  ++counts()[function];
}

}  // namespace

TESSERA_COUNT_MPI(count_call)

namespace tessera::test {

void MpiSpy::reset() {
  const std::lock_guard lock(mutex);
  counts().clear();
}

int MpiSpy::count(std::string_view function) {
  const std::lock_guard lock(mutex);
  const auto found = counts().find(function);
  return found == counts().end() ? 0 : found->second;
}

int MpiSpy::calls() {
  return count("MPI_Allreduce") + count("MPI_Iallreduce") + count("MPI_Bcast") +
         count("MPI_Barrier") + communicators_made();
}

int MpiSpy::communicators_made() { return count("MPI_Comm_dup") + count("MPI_Comm_split"); }

}  // namespace tessera::test
