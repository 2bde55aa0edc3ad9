"""Sixty questions over three public trees that ranking was never tuned on, with the files that answer them.

Written from knowledge of the projects and the names of their files, and committed before any result was looked at. They are not to be changed to suit
the results; a wrong one is struck out with its reason. The trees stand in the cache of the scorecard (`python -m bench.scorecard fill`).
"""

from __future__ import annotations

TREES = {
    "flask": ("pallets/flask", "2ac89889f4cc330eabd50f295dcef02828522c69"),
    "redis": ("redis/redis", "4f8cdc2a1ea53e42955af758aabffee67cb455dd"),
    "gin": ("gin-gonic/gin", "dcaa4296d111981ffb31ac3eba90bb63e1eb5ab9"),
}

FRESH_QUESTIONS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "flask": [
        ("Blueprint register", ("src/flask/sansio/blueprints.py", "src/flask/blueprints.py")),
        ("SecureCookieSessionInterface", ("src/flask/sessions.py",)),
        ("url_for", ("src/flask/helpers.py", "src/flask/app.py")),
        ("send_from_directory", ("src/flask/helpers.py",)),
        ("MethodView dispatch_request", ("src/flask/views.py",)),
        ("load config from_prefixed_env", ("src/flask/config.py",)),
        ("TaggedJSONSerializer", ("src/flask/json/tag.py",)),
        ("DefaultJSONProvider", ("src/flask/json/provider.py",)),
        ("test client session_transaction", ("src/flask/testing.py",)),
        ("routes command list endpoints", ("src/flask/cli.py",)),
        ("locate_app find factory", ("src/flask/cli.py",)),
        ("copy_current_request_context", ("src/flask/ctx.py",)),
        ("stream_with_context", ("src/flask/helpers.py", "docs/patterns/streaming.rst")),
        ("render_template_string", ("src/flask/templating.py",)),
        ("flash messages categories", ("src/flask/helpers.py", "docs/patterns/flashing.rst")),
        ("has_level_handler wsgi_errors_stream", ("src/flask/logging.py",)),
        ("upload files allowed extensions", ("docs/patterns/fileuploads.rst",)),
        ("tell flask it is behind a proxy", ("docs/deploying/proxy_fix.rst",)),
        ("got_request_exception signal", ("src/flask/signals.py", "docs/signals.rst", "src/flask/app.py")),
        ("register_error_handler by code", ("src/flask/sansio/scaffold.py", "docs/errorhandling.rst")),
    ],
    "redis": [
        ("zskiplist insert node", ("src/t_zset.c",)),
        ("aofRewriteBufferAppend rewrite append only file in background", ("src/aof.c",)),
        ("rdbSaveBackground", ("src/rdb.c",)),
        ("incremental rehash dictRehash", ("src/dict.c",)),
        ("evictionPoolPopulate", ("src/evict.c",)),
        ("activeExpireCycle", ("src/expire.c",)),
        ("hllDenseAdd hyperloglog", ("src/hyperloglog.c",)),
        ("sdscatprintf", ("src/sds.c",)),
        ("quicklistPushHead", ("src/quicklist.c",)),
        ("aeProcessEvents event loop", ("src/ae.c",)),
        ("sentinel failover state machine", ("src/sentinel.c",)),
        ("clusterProcessGossipSection", ("src/cluster_legacy.c",)),
        ("client side caching tracking table", ("src/tracking.c",)),
        ("processMultibulkBuffer", ("src/networking.c",)),
        ("slowlogPushEntryIfNeeded", ("src/slowlog.c",)),
        ("streamTrimByLength", ("src/t_stream.c",)),
        ("blockForKeys", ("src/blocked.c",)),
        ("geohash encode latitude longitude", ("src/geohash.c", "src/geohash_helper.c", "src/geo.c")),
        ("syncWithMaster psync partial resynchronization", ("src/replication.c",)),
        ("ACL check command permissions", ("src/acl.c",)),
    ],
    "gin": [
        ("addRoute radix tree node", ("tree.go",)),
        ("cleanPath", ("path.go",)),
        ("ShouldBindJSON", ("context.go",)),
        ("BasicAuthForRealm", ("auth.go",)),
        ("LoggerWithConfig", ("logger.go",)),
        ("CustomRecoveryWithWriter stack trace", ("recovery.go",)),
        ("RouterGroup StaticFS", ("routergroup.go",)),
        ("responseWriter Hijack", ("response_writer.go",)),
        ("mapping form values to struct setWithProperType", ("binding/form_mapping.go",)),
        ("default validator lazy init", ("binding/default_validator.go",)),
        ("SecureJSON prefix", ("render/json.go", "context.go", "gin.go")),
        ("HTML render debug production", ("render/html.go",)),
        ("redirect status code check", ("render/redirect.go",)),
        ("SetMode release debug test", ("mode.go",)),
        ("Error type private public bind", ("errors.go",)),
        ("trusted proxies prepare cidr", ("gin.go",)),
        ("ClientIP remote address header", ("context.go",)),
        ("directory listing onlyFilesFS", ("fs.go",)),
        ("StringToBytes without allocation", ("internal/bytesconv/bytesconv.go",)),
        ("multipart file header bind by slice", ("binding/multipart_form_mapping.go",)),
    ],
}
