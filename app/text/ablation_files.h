// An ablation as files: ablation.json, whose fields carry their units, ablation.csv, a line a variant, and ablation.html, one page that
// needs nothing beside it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "models/study/ablation.h"

namespace tilewave {

nlohmann::ordered_json ablation_json(const AblationReport& report);
std::string text_of(const nlohmann::ordered_json& ablation);
std::string ablation_csv(const nlohmann::ordered_json& ablation);
std::string ablation_page(const nlohmann::ordered_json& ablation);

// All three into the folder.
void write_ablation(const std::filesystem::path& folder, const AblationReport& report);

}  // namespace tilewave
