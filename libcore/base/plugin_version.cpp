// Part of every plugin and of no other library, because base/plugin.h compares it with the program's.

extern "C" {

/// The version of Megalith that the plugin belongs to.
__attribute__((visibility("default"))) const char* megalith_plugin_version() {
  return MEGALITH_VERSION;
}
}
