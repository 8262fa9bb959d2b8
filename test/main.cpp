// SPDX-License-Identifier: Apache-2.0
// The main of every test executable: MPI, then Kokkos, then GoogleTest on all ranks at once.
//
// A test has failed if it failed on any rank, and every rank learns that at the end of each test. A
// rank that leaves a test early may have left the others inside a collective that it never joined.
// It therefore waits for them for a grace period only, and then ends the job.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>
#include <mpi.h>

namespace {

using Clock = std::chrono::steady_clock;

/// Starts every message that repeats on one rank what another rank has already printed.
constexpr std::string_view kFailedElsewhere = "[other ranks] failed on rank";

class Mpi {
 public:
  Mpi(int& argc, char**& argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
};

/// The communicator on which ranks agree; no test can disturb its traffic.
class Harness {
 public:
  Harness() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    if (const char* text = std::getenv("TESSERA_TEST_GRACE_SECONDS")) {
      grace_ = std::chrono::seconds(std::atoi(text));
    }
  }
  ~Harness() { MPI_Comm_free(&comm_); }
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  int rank() const { return rank_; }

  /// The ranks that brought `failed`, on every rank. Ends the job if a rank that failed is not
  /// joined by the others in time, or if the ranks are not at the same place.
  std::vector<int> agree(bool failed, const std::string& place) const {
    const unsigned here = static_cast<unsigned>(std::hash<std::string>{}(place));
    const unsigned mine[2] = {failed ? 1u : 0u, here};
    std::vector<unsigned> all(2 * static_cast<std::size_t>(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine, 2, MPI_UNSIGNED, all.data(), 2, MPI_UNSIGNED, comm_, &request);
    wait(request, failed, place);
    std::vector<int> ranks;
    for (std::size_t r = 0; r < all.size() / 2; ++r) {
      if (all[2 * r] != 0) ranks.push_back(static_cast<int>(r));
      if (all[2 * r + 1] != here)
        abort("is at " + place + ", but rank " + std::to_string(r) + " is not");
    }
    return ranks;
  }

 private:
  void wait(MPI_Request& request, bool failed, const std::string& place) const {
    const auto start = Clock::now();
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      const auto waited = Clock::now() - start;
      if (done == 0 && failed && waited > grace_) {
        abort("failed in " + place + " and the other ranks did not reach its end; ending the job");
      }
      // Ranks share cores in tests: leave them to those that still work.
      if (waited > std::chrono::milliseconds(1)) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      } else {
        std::this_thread::yield();
      }
    }
  }

  [[noreturn]] void abort(const std::string& text) const {
    std::fprintf(stderr, "[rank %d] %s\n", rank_, text.c_str());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  Clock::duration grace_ = std::chrono::seconds(10);
};

std::string full_name(const testing::TestInfo& info) {
  return std::string(info.test_suite_name()) + "." + info.name();
}

/// Fails a test on all ranks that failed on one.
class AgreeOnFailures : public testing::EmptyTestEventListener {
 public:
  explicit AgreeOnFailures(const Harness& harness) : harness_(harness) {}

  void OnTestEnd(const testing::TestInfo& info) override {
    // GoogleTest skips the tests of a suite whose set-up failed; the other ranks run them.
    const auto* suite = testing::UnitTest::GetInstance()->current_test_suite();
    const bool failed = info.result()->Failed() || suite->ad_hoc_test_result().Failed();
    const std::vector<int> ranks = harness_.agree(failed, full_name(info));
    if (failed || ranks.empty()) return;
    std::ostringstream text;
    text << kFailedElsewhere;
    for (int r : ranks) text << ' ' << r;
    ADD_FAILURE_AT(info.file(), info.line()) << text.str();
  }

 private:
  const Harness& harness_;
};

/// Prints the failures of a rank other than 0, every line with the rank.
class PrintFailures : public testing::EmptyTestEventListener {
 public:
  explicit PrintFailures(int rank) : prefix_("[rank " + std::to_string(rank) + "] ") {}

  // Remembered, because GoogleTest holds its lock while it tells of a failure.
  void OnTestSuiteStart(const testing::TestSuite& suite) override {
    place_ = std::string("the fixture of ") + suite.name();
  }
  void OnTestStart(const testing::TestInfo& info) override { place_ = full_name(info); }
  void OnTestEnd(const testing::TestInfo& info) override {
    place_ = std::string("the fixture of ") + info.test_suite_name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    std::istringstream message(result.message());
    if (!result.failed() || message.str().find(kFailedElsewhere) != std::string::npos) return;
    std::ostringstream text;
    text << prefix_ << (result.file_name() ? result.file_name() : "unknown file") << ':'
         << result.line_number() << ": failure in " << place_ << '\n';
    for (std::string line; std::getline(message, line);) text << prefix_ << line << '\n';
    std::fputs(text.str().c_str(), stdout);
    std::fflush(stdout);
  }

 private:
  std::string prefix_;
  std::string place_ = "the set-up of all tests";
};

int run_tests(int& argc, char** argv) {
  const Harness harness;
  testing::InitGoogleTest(&argc, argv);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (harness.rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new PrintFailures(harness.rank()));
  }
  // Last, because ends of tests are told to listeners in reverse: the printer sees what was agreed.
  listeners.Append(new AgreeOnFailures(harness));
  const int status = RUN_ALL_TESTS();
  return harness.agree(status != 0, "the end of all tests").empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Mpi mpi(argc, argv);
#ifdef KOKKOS_ENABLE_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: this process sees no GPU");
    return 77;
  }
#endif
  const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings().set_disable_warnings(true));
  return run_tests(argc, argv);
}
