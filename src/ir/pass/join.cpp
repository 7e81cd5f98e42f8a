// SPDX-License-Identifier: Apache-2.0
// Passes that join built-in pipelines from outside.
#include <baton/ir/pipeline.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace baton::transform {
namespace {

struct Joined {
  std::string pipeline, pass, before, after;
};
struct JoinTable {
  std::mutex mutex;
  std::vector<Joined> rows;
  static JoinTable& Get() {
    static auto* t = new JoinTable;
    return *t;
  }
  void Erase(std::string_view pipeline, std::string_view pass) {
    std::erase_if(rows, [&](const Joined& j) { return j.pipeline == pipeline && j.pass == pass; });
  }
};

void CheckPipeline(const String& name) {
  static const std::vector<std::string> known = {"DefaultPipeline", "LowerPipeline"};
  if (std::find(known.begin(), known.end(), name.view()) != known.end()) return;
  std::string near = support::DidYouMean(name.view(), known);
  throw runtime::ValueError("there is no built-in pipeline `" + name.str() + "`" +
                            (near.empty() ? "; there are DefaultPipeline and LowerPipeline" : near));
}

}  // namespace

void JoinPipeline(const String& pipeline, const String& pass, const String& before, const String& after) {
  if (!before.view().empty() && !after.view().empty()) {
    throw runtime::ValueError("`" + pass.str() + "` joins `" + pipeline.str() +
                              "` before a pass or after one, not both");
  }
  CheckPipeline(pipeline);
  GetPass(pass);  // an unknown name is an error now
  JoinTable& t = JoinTable::Get();
  std::lock_guard lock(t.mutex);
  t.Erase(pipeline.view(), pass.view());
  t.rows.push_back({pipeline.str(), pass.str(), before.str(), after.str()});
}

void LeavePipeline(const String& pipeline, const String& pass) {
  CheckPipeline(pipeline);
  JoinTable& t = JoinTable::Get();
  std::lock_guard lock(t.mutex);
  t.Erase(pipeline.view(), pass.view());
}

Array<Pass> WithJoined(const String& pipeline, const Array<Pass>& passes) {
  std::vector<Joined> rows;
  {
    JoinTable& t = JoinTable::Get();
    std::lock_guard lock(t.mutex);
    for (const Joined& j : t.rows) {
      if (j.pipeline == pipeline.view()) rows.push_back(j);
    }
  }
  if (rows.empty()) return passes;
  std::vector<Pass> out(passes.begin(), passes.end());
  std::vector<const Joined*> from(out.size(), nullptr);  // null: of the pipeline itself, which alone has anchors
  for (const Joined& j : rows) {
    size_t at = out.size();
    const std::string& anchor = j.before.empty() ? j.after : j.before;
    if (!anchor.empty()) {
      std::vector<std::string> known;
      bool found = false;
      for (size_t i = 0; i < out.size(); ++i) {
        if (from[i]) continue;
        known.push_back(out[i]->Info()->name.str());
        if (out[i]->Info()->name != anchor) continue;
        if (!j.before.empty()) {
          if (!found) at = i;
        } else {
          for (at = i + 1; at < out.size() && from[at] && from[at]->after == anchor;) ++at;  // those that joined before
        }
        found = true;
      }
      if (!found) {
        throw runtime::ValueError("`" + j.pass + "` joined `" + j.pipeline + "` beside the pass `" + anchor +
                                  "`, which is not in it" + support::DidYouMean(anchor, known));
      }
    }
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), GetPass(String(j.pass)));
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(at), &j);
  }
  return out;
}

BATON_REGISTER_GLOBAL("transform.JoinPipeline")
    .set_body_typed([](String pipeline, String pass, String before, String after) {
      JoinPipeline(pipeline, pass, before, after);
    });
BATON_REGISTER_GLOBAL("transform.LeavePipeline").set_body_typed([](String pipeline, String pass) {
  LeavePipeline(pipeline, pass);
});

}  // namespace baton::transform
