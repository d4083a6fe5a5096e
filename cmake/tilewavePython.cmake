# What the Python package (pyproject.toml) has beside its sources: libtilewave with the libraries that it links, in tilewave/lib. NVIDIA's
# driver and libraries are whoever's who has them: libtilewave opens them when they are asked for. The system's own C and C++ libraries stay
# out too, as every wheel's.
set_target_properties(tilewave_kernels tilewave_interface PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS tilewave_interface tilewave_kernels RUNTIME_DEPENDENCY_SET python LIBRARY DESTINATION tilewave/lib COMPONENT python
        NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(RUNTIME_DEPENDENCY_SET python
        PRE_EXCLUDE_REGEXES "^(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\\+\\+|libcu.*|libnv.*)\\.so.*"
        POST_EXCLUDE_REGEXES "libtilewave.*"
        LIBRARY DESTINATION tilewave/lib COMPONENT python EXCLUDE_FROM_ALL)
