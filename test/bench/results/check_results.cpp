// SPDX-License-Identifier: Apache-2.0
// Checks a results directory against bench/RESULTS.md: its keys, their types, and the relations
// between numbers. Usage: check_results DIRECTORY
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "results/summary.hpp"

namespace {

using Json = nlohmann::json;
using tessera::Size;
using tessera::bench::ResultsDirectory;

int failures = 0;
void fail(const std::string& where, const std::string& what) {
  std::printf("%s: %s\n", where.c_str(), what.c_str());
  ++failures;
}

/// Types by letter: s string, n number, i integer, b boolean, a array, o object, 0 null.
bool has_type(const Json& value, char type) {
  switch (type) {
    case 's':
      return value.is_string();
    case 'n':
      return value.is_number();
    case 'i':
      return value.is_number_integer();
    case 'b':
      return value.is_boolean();
    case 'a':
      return value.is_array();
    case 'o':
      return value.is_object();
    default:
      return value.is_null();
  }
}

struct Key {
  const char* pointer;
  const char* types;
};

void check_keys(const std::string& where, const Json& document, std::initializer_list<Key> keys) {
  for (const Key& key : keys) {
    const Json::json_pointer at(key.pointer);
    if (!document.contains(at)) {
      fail(where, std::string("lacks ") + key.pointer);
      continue;
    }
    bool right = false;
    for (const char* type = key.types; *type != '\0'; ++type)
      right |= has_type(document.at(at), *type);
    if (!right) fail(where, std::string(key.pointer) + " is " + document.at(at).dump());
  }
}

void check_near(const std::string& where, const char* what, double value, double expected) {
  if (!(std::abs(value - expected) <= 1e-6 * std::abs(expected) + 1e-15))
    fail(where, std::string(what) + " is " + std::to_string(value) + ", expected " +
                    std::to_string(expected));
}

void check_ok(const std::string& id, const Json& r) {
  check_keys(id, r,
             {{"/loss/verdict", "s"},
              {"/loss/tolerance", "n"},
              {"/loss/largest_relative_difference", "n0"},
              {"/loss/epoch_losses", "a"},
              {"/loss/step_losses", "a"},
              {"/loss/reference_step_losses", "a0"},
              {"/loss/validation_losses", "a"},
              {"/loss/reference_validation_losses", "a0"},
              {"/loss/validated_at_steps", "a"},
              {"/loss/reference", "s"},
              {"/loss/reference_ranks", "n"},
              {"/step_seconds/mad", "n"},
              {"/step_seconds/ci95_low", "n0"},
              {"/step_seconds/ci95_high", "n0"},
              {"/step_seconds/n", "i"},
              {"/step_seconds/outliers", "i"},
              {"/step_seconds/warm_up", "i"},
              {"/rounds", "a"},
              {"/rounds/0/machine/product_seconds", "n"},
              {"/launches", "i"},
              {"/traffic/as_planned", "b"},
              {"/traffic/rows", "a"},
              {"/memory/planned_bytes", "i"},
              {"/memory/measured_bytes", "i"},
              {"/memory/predicted_oom", "b"},
              {"/compute/flops_per_second", "n"},
              {"/compute/flops_per_second_per_rank", "n"},
              {"/compute/gemm_peak_flops_per_second", "n"},
              {"/compute/mfu", "n"},
              {"/compute/vendor_mfu", "n0"},
              {"/prediction/machine", "s"},
              {"/prediction/step_seconds", "n"},
              {"/prediction/product_seconds", "n"},
              {"/prediction/kernel_seconds", "n"},
              {"/prediction/optimizer_seconds", "n"},
              {"/prediction/communication_seconds", "n"},
              {"/prediction/idle_seconds", "n"},
              {"/prediction/oversubscribed", "b"},
              {"/explanation/0/part", "s"},
              {"/explanation/0/predicted_seconds", "n"},
              {"/explanation/0/measured_seconds", "n"},
              {"/checkpoint", "o0"},
              {"/samples_per_second", "n"}});
  if (const Json& checkpoint = r.at("checkpoint"); !checkpoint.is_null()) {
    check_keys(id, checkpoint,
               {{"/directory", "s"},
                {"/async", "b"},
                {"/checkpoints", "i"},
                {"/steps_while_writing", "i"},
                {"/step_seconds_while_writing", "n0"},
                {"/exposed_seconds", "n"},
                {"/read_bytes_per_second", "n"}});
    const double bytes = checkpoint.at("bytes"), seconds = checkpoint.at("write_seconds");
    check_near(id, "write_bytes_per_second", checkpoint.at("write_bytes_per_second"),
               bytes / seconds);
    const double exposed = checkpoint.at("exposed_seconds");
    if (!(0 < exposed && exposed <= seconds * (1 + 1e-9)) ||
        (checkpoint.at("async") == (exposed == seconds)))
      fail(id, "checkpoint: " + checkpoint.dump());
  }
  const Json& step = r.at("step_seconds");
  const double median = step.at("median");
  if (!(step.at("min") <= median && median <= step.at("p95") && step.at("p95") <= step.at("max")))
    fail(id, "step times are not in order: " + step.dump());
  if (!step.at("ci95_low").is_null() &&
      !(step.at("ci95_low") <= median && median <= step.at("ci95_high")))
    fail(id, "the median lies outside of its confidence interval");
  check_near(id, "samples_per_second", r.at("samples_per_second"),
             r.at("case").at("global_batch").get<double>() / median);
  const Json& breakdown = r.at("breakdown");
  double sum = 0;
  for (const char* part : {"compute", "communication", "idle", "optimizer", "other"}) {
    sum += breakdown.at(part).at("mean_rank_seconds").get<double>();
    if (breakdown.at(part).at("max_rank_seconds").get<double>() <
        breakdown.at(part).at("mean_rank_seconds").get<double>() * (1 - 1e-9))
      fail(id, std::string(part) + ": the mean is above the maximum");
  }
  const Json &products = breakdown.at("products"), &compute = breakdown.at("compute");
  if (!(products.at("mean_rank_seconds") > 0 &&
        products.at("mean_rank_seconds") <= compute.at("mean_rank_seconds")))
    fail(id, "products take " + products.dump() + " of " + compute.dump());
  Size bytes = 0;
  for (const auto& [part, size] : r.at("memory").at("parts").items()) bytes += size.get<Size>();
  if (bytes != r.at("memory").at("planned_bytes"))
    fail(id, "the parts of its memory add up to " + std::to_string(bytes));
  const double instrumented = breakdown.at("step_seconds");
  if (std::abs(sum - instrumented) > 0.01 * instrumented)
    fail(id, "the parts of a step add up to " + std::to_string(sum) + " of " +
                 std::to_string(instrumented));
  const double ranks = r.at("case").at("ranks");
  double moved = 0;
  for (const Json& row : r.at("traffic").at("rows")) {
    check_keys(id + " traffic", row,
               {{"/axis", "s"},
                {"/operation", "s"},
                {"/group_size", "i"},
                {"/planned_calls", "i"},
                {"/measured_calls", "i"},
                {"/planned_payload_bytes", "i"},
                {"/measured_payload_bytes", "i"},
                {"/calls_per_step", "i0"},
                {"/rounds_per_step", "n0"},
                {"/wire_bytes_per_step", "n0"},
                {"/seconds_per_step", "n0"},
                {"/bus_bytes_per_second", "n0"}});
    if (row.at("planned_calls") != row.at("measured_calls")) fail(id, "traffic: " + row.dump());
    if (!row.at("calls_per_step").is_null() && row.at("seconds_per_step").is_null())
      fail(id, "calls of a step that took no time: " + row.dump());
    if (!row.at("seconds_per_step").is_null()) moved += row.at("seconds_per_step").get<double>();
  }
  const double communication = breakdown.at("communication").at("mean_rank_seconds");
  if (std::abs(moved - communication) > 0.01 * instrumented)
    fail(id, "rows of traffic take " + std::to_string(moved) + " s of " +
                 std::to_string(communication) + " s of communication");
  if (ranks == 1 && !r.at("traffic").at("rows").empty()) fail(id, "one rank talks to itself");
}

void check_case(const std::string& id, const Json& r) {
  check_keys(id, r,
             {{"/schema_version", "i"},
              {"/id", "s"},
              {"/study", "s"},
              {"/label", "s"},
              {"/status", "s"},
              {"/reason", "s0"},
              {"/exit_code", "i"},
              {"/attempt", "i"},
              {"/launch", "s"},
              {"/started", "s"},
              {"/finished", "s"},
              {"/factors", "o"},
              {"/factors/strategy", "s"},
              {"/factors/mesh", "s"},
              {"/factors/ranks", "i"},
              {"/factors/global_batch", "i"},
              {"/factors/microbatches", "i"},
              {"/case/mesh", "a"},
              {"/case/parameters", "i0"},
              {"/case/dtype", "s"},
              {"/config/model/widths", "a"},
              {"/loss", "o0"},
              {"/step_seconds", "o0"},
              {"/samples_per_second", "n0"},
              {"/breakdown", "o0"},
              {"/traffic", "o0"},
              {"/memory", "o0"},
              {"/compute", "o0"},
              {"/prediction", "o0"},
              {"/explanation", "a0"}});
  static const std::set<std::string> statuses{"ok",      "unverified", "invalid", "oom",
                                              "timeout", "failed",     "skipped"};
  const std::string status = r.value("status", "");
  if (statuses.count(status) == 0) fail(id, "status " + status);
  if (status == "ok") {
    check_ok(id, r);
  } else if (r.at("reason").is_null()) {
    fail(id, status + " without a reason");
  }
}

double cores_of(const Json& row) {
  return row.at("ranks").get<double>() * row.at("factors").value("distributed.threads", 1.0);
}

void check_row(const Json& row, const Json& rows) {
  const std::string id = row.at("id");
  if (row.at("status") != "ok" || row.at("baseline").is_null()) return;
  const auto base = std::find_if(rows.begin(), rows.end(), [&](const Json& other) {
    return other.at("id") == row.at("baseline");
  });
  check_near(id, "speed-up over efficiency",
             row.at("speedup").get<double>() / row.at("efficiency").get<double>(),
             cores_of(row) / cores_of(*base));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  const ResultsDirectory directory(argv[1]);
  const Json study = directory.study();
  check_keys("study.json", study,
             {{"/schema_version", "i"},
              {"/name", "s"},
              {"/scaling", "s"},
              {"/baseline/strategy", "s"},
              {"/measure/steps", "i"},
              {"/limits/case_seconds", "n"},
              {"/verify/tolerance", "n"},
              {"/cases", "a"}});
  const auto results = tessera::bench::read_results(directory);
  for (const tessera::bench::CaseResult& result : results.cases) {
    if (result.status == "pending" || result.status == "running") continue;
    check_case(result.id, directory.read("cases/" + result.id + "/result.json")->json());
    if (result.status != "ok") continue;
    const Json launch = directory.launch(result.launch).value_or(Json::object());
    check_keys("launch", launch,
               {{"/provenance/git_revision", "s"},
                {"/provenance/mpi/library", "s"},
                {"/provenance/placement", "a"},
                {"/calibration", "a"},
                {"/calibration_seconds", "n"},
                {"/machines/0/file", "s"},
                {"/order", "a"},
                {"/seed", "i"}});
    std::size_t steps = 0;
    for (const std::vector<double>& round : results.steps.at(result.id)) steps += round.size();
    if (steps != result.step_seconds.at("n").get<std::size_t>() ||
        results.steps.at(result.id).size() != result.rounds.size())
      fail(result.id, "not all step times are in steps.json");
  }
  const Json summary = tessera::bench::summarize_study(results);
  for (const Json& row : summary.at("cases")) check_row(row, summary.at("cases"));
  if (failures == 0) std::printf("%zu cases as described\n", results.cases.size());
  return failures == 0 ? 0 : 1;
}
