/* `wsh`, for those who start many terminals: `wsh new` straight to the server's socket, everything else in Python.
 *
 * An interpreter's start alone takes longer than the whole of a new session, so the one command that scripts call in loops is spoken
 * here: one HTTP request on the unix socket, the new session's name on stdout. Whatever is not plainly that (another command, an
 * option this file does not know, no server, an answer that is not "created") is handed to `wsh-python` beside this file, with the
 * same arguments, and that one decides and explains. Nothing is decided here, and nothing is handed over once a session was made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { FAILED = 1, NO_SERVER = 6, LONGEST_SOCKET = 107 };

static char **arguments;

/* Become the Python edition beside this file. */
static _Noreturn void hand_over(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "-python");
    if (length > 0) {
        path[length] = 0;
        char *slash = strrchr(path, '/');
        if (slash != NULL && (size_t)(slash - path) + sizeof "/wsh-python" <= sizeof path) {
            strcpy(slash, "/wsh-python");
            execv(path, arguments);
        }
    }
    fprintf(stderr, "wsh: wsh-python is not beside this program; install wsh again\n");
    exit(FAILED);
}

/* text that grows */

struct text {
    char *at;
    size_t length, room;
};

static void append_bytes(struct text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->room) {
        text->room = (text->length + length + 1) * 2;
        text->at = realloc(text->at, text->room);
        if (text->at == NULL) hand_over();
    }
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = 0;
}

static void append(struct text *text, const char *bytes) { append_bytes(text, bytes, strlen(bytes)); }

/* JSON */

/* The length of one well-formed UTF-8 character, or 0. Overlong forms and surrogates are not well-formed. */
static size_t character_length(const unsigned char *c) {
    if (c[0] < 0x80) return 1;
    size_t length = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4) return 0;
    for (size_t n = 1; n < length; n++)
        if ((c[n] & 0xc0) != 0x80) return 0;
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f)) return 0;
    if ((c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f)) return 0;
    return length;
}

static void append_string(struct text *json, const char *value) {
    append(json, "\"");
    for (const unsigned char *c = (const unsigned char *)value; *c;) {
        size_t length = character_length(c);
        if (length == 0) hand_over();
        if (*c == '"' || *c == '\\') {
            char pair[3] = {'\\', (char)*c, 0};
            append(json, pair);
        } else if (*c < 0x20 || *c == 0x7f) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", *c);
            append(json, escape);
        } else {
            append_bytes(json, (const char *)c, length);
        }
        c += length;
    }
    append(json, "\"");
}

static void append_key(struct text *json, const char *key) {
    append(json, json->length > 1 ? ", " : "");
    append_string(json, key);
    append(json, ": ");
}

/* A word as a shell would have to read it to get the same word again. */
static void append_quoted(struct text *line, const char *word) {
    if (*word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == strlen(word)) {
        append(line, word);
        return;
    }
    append(line, "'");
    for (; *word; word++)
        if (*word == '\'')
            append(line, "'\"'\"'");
        else
            append_bytes(line, word, 1);
    append(line, "'");
}

/* the command line */

struct request {
    const char *name, *rows, *cols, *cwd;
    const char **env, **tags, **words;
    size_t envs, tagged, worded;
};

static bool is_size(const char *value) {
    return value[0] >= '1' && value[0] <= '9' && strlen(value) <= 4 && strspn(value, "0123456789") == strlen(value);
}

/* Absolute, and nothing in it that a path may be spelled without. */
static bool is_plain_path(const char *path) {
    size_t length = strlen(path);
    if (path[0] != '/' || (length > 1 && path[length - 1] == '/')) return false;
    return strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL &&
           strcmp(path + length - (length > 1 ? 2 : 1), "/.") != 0 && (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

/* The value of the option that `*at` is, or NULL if it is another one. */
static const char *option_value(char ***at, const char *name, const char *letter) {
    char *word = **at;
    size_t length = strlen(name);
    if (strncmp(word, name, length) == 0 && word[length] == '=') return word + length + 1;
    if (strcmp(word, name) != 0 && (letter == NULL || strcmp(word, letter) != 0)) return NULL;
    if ((*at)[1] == NULL) hand_over();
    return *++*at;
}

static void read_arguments(struct request *request, int count, char **words) {
    request->env = calloc((size_t)count + 1, sizeof(char *));
    request->tags = calloc((size_t)count + 1, sizeof(char *));
    request->words = calloc((size_t)count + 1, sizeof(char *));
    if (!request->env || !request->tags || !request->words) hand_over();
    bool options = true;
    for (char **at = words; *at; at++) {
        const char *value;
        if (!options || (*at)[0] != '-')
            request->words[request->worded++] = *at;
        else if (request->worded > 0)
            hand_over();
        else if (strcmp(*at, "--") == 0)
            options = false;
        else if ((value = option_value(&at, "--name", NULL)))
            request->name = value;
        else if ((value = option_value(&at, "--rows", NULL)))
            request->rows = value;
        else if ((value = option_value(&at, "--cols", NULL)))
            request->cols = value;
        else if ((value = option_value(&at, "--cwd", NULL)))
            request->cwd = value;
        else if ((value = option_value(&at, "--env", "-e")))
            request->env[request->envs++] = value;
        else if ((value = option_value(&at, "--tag", NULL)))
            request->tags[request->tagged++] = value;
        else
            hand_over();
    }
    if ((request->rows && !is_size(request->rows)) || (request->cols && !is_size(request->cols))) hand_over();
}

static struct text describe(const struct request *request) {
    struct text json = {0};
    char here[4096];
    append(&json, "{");
    const char *cwd = request->cwd ? request->cwd : getcwd(here, sizeof here);
    if (cwd == NULL || !is_plain_path(cwd)) hand_over();
    append_key(&json, "cwd");
    append_string(&json, cwd);
    if (request->name) {
        append_key(&json, "name");
        append_string(&json, request->name);
    }
    if (request->rows) {
        append_key(&json, "rows");
        append(&json, request->rows);
    }
    if (request->cols) {
        append_key(&json, "cols");
        append(&json, request->cols);
    }
    if (request->worded > 0) {
        struct text line = {0};
        for (size_t n = 0; n < request->worded; n++) {
            if (n > 0) append(&line, " ");
            if (request->worded == 1)
                append(&line, request->words[0]);
            else
                append_quoted(&line, request->words[n]);
        }
        append_key(&json, "command");
        append_string(&json, line.at ? line.at : "");
    }
    if (request->envs > 0) {
        struct text pairs = {0};
        append(&pairs, "{");
        for (size_t n = 0; n < request->envs; n++) {
            const char *equals = strchr(request->env[n], '=');
            if (equals == NULL) hand_over();
            char *key = strndup(request->env[n], (size_t)(equals - request->env[n]));
            if (key == NULL) hand_over();
            append_key(&pairs, key);
            append_string(&pairs, equals + 1);
        }
        append(&pairs, "}");
        append_key(&json, "env");
        append(&json, pairs.at);
    }
    if (request->tagged > 0) {
        append_key(&json, "tags");
        append(&json, "[");
        for (size_t n = 0; n < request->tagged; n++) {
            if (n > 0) append(&json, ", ");
            append_string(&json, request->tags[n]);
        }
        append(&json, "]");
    }
    append(&json, "}");
    return json;
}

/* the server */

/* A connection to this user's own server. Where its socket is said in other words than the usual ones, Python knows. */
static int connect_server(void) {
    const char *server = getenv("WSH_SERVER"), *runtime = getenv("XDG_RUNTIME_DIR");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    char base[LONGEST_SOCKET];
    if (server == NULL || !*server) server = "default";
    if (runtime && *runtime && stat(runtime, &info) == 0 && S_ISDIR(info.st_mode)) {
        if (runtime[0] != '/' || strlen(runtime) >= sizeof base) hand_over();
        strcpy(base, runtime);
    } else {
        if (getenv("TMPDIR") || getenv("TEMP") || getenv("TMP")) hand_over();
        snprintf(base, sizeof base, "/tmp/wsh-%u", getuid());
    }
    if (strlen(base) + strlen(server) + strlen("/wsh/.keeper.sock") > LONGEST_SOCKET) hand_over();
    char *end = stpcpy(stpcpy(address.sun_path, base), "/wsh/");
    strcpy(stpcpy(end, server), ".sock");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) hand_over();
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != getuid()) hand_over();
    return fd;
}

static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "wsh: the server is gone: %s\n     wsh list shows whether the session was made\n", why);
    exit(NO_SERVER);
}

static void send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) hand_over(); /* not even heard whole, so nothing was made */
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* Wait until there is something to read; what takes more than a second says so on a terminal. */
static void wait_readable(int fd) {
    static int passed;
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    bool told = false;
    for (;;) {
        int ready = poll(&waited, 1, 1000);
        if (ready > 0 || (ready < 0 && errno != EINTR)) break;
        if (ready == 0 && isatty(2)) {
            fprintf(stderr, "\r\x1b[2Kstarting… %d s", ++passed);
            told = true;
        }
    }
    if (told) fprintf(stderr, "\r\x1b[2K");
}

/* The whole answer: its head, an empty line, and as many bytes as the head says. */
static struct text receive(int fd) {
    struct text answer = {0};
    char buffer[8192];
    for (;;) {
        char *body = answer.at ? strstr(answer.at, "\r\n\r\n") : NULL;
        if (body) {
            char *length = strcasestr(answer.at, "\r\ncontent-length:");
            if (length == NULL || length > body) give_up("its answer has no length");
            size_t wanted = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
            if (answer.length - (size_t)(body + 4 - answer.at) >= wanted) return answer;
        }
        wait_readable(fd);
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) give_up(strerror(errno));
        if (got == 0) give_up("it closed the connection");
        append_bytes(&answer, buffer, (size_t)got);
    }
}

static int create(const struct request *request) {
    struct text json = describe(request);
    int fd = connect_server();
    struct text message = {0};
    char length[32];
    snprintf(length, sizeof length, "%zu", json.length);
    append(&message, "POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ");
    append(&message, length);
    append(&message, "\r\nConnection: close\r\n\r\n");
    append_bytes(&message, json.at, json.length);
    send_all(fd, message.at, message.length);
    struct text answer = receive(fd);
    if (strncmp(answer.at, "HTTP/1.1 201 ", 13) != 0) {
        close(fd);
        hand_over(); /* refused: Python asks again and says why */
    }
    char *key = strstr(answer.at, "\"name\":");
    char *start = key ? strchr(key + strlen("\"name\":"), '"') : NULL;
    char *end = start ? strchr(start + 1, '"') : NULL;
    if (end == NULL) give_up("its answer names no session");
    *end = 0;
    return puts(start + 1) < 0 || fflush(stdout) != 0 ? FAILED : 0;
}

int main(int count, char **words) {
    arguments = words;
    if (count < 2 || strcmp(words[1], "new") != 0) hand_over();
    struct request request = {0};
    read_arguments(&request, count - 2, words + 2);
    return create(&request);
}
