/* What every hostile guest shares: `attempt` tries one thing and returns 0 if it got through.
   Exit code 0: got through; 1: denied, with the reason on standard output. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *outside;       /* a directory next to the workspace */
static int port;                  /* a TCP and UDP echo service of the host */
static const char *abstract_name; /* an abstract socket of the host */
static int outsider;              /* a process of the host */
static char buffer[8192];

static int attempt(void);

__attribute__((unused)) static const char *at(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", outside, name);
  return path;
}

__attribute__((unused)) static int reads(const char *path) {
  int fd = open(path, O_RDONLY);
  return fd >= 0 && read(fd, buffer, sizeof buffer) >= 0 ? 0 : -1;
}

__attribute__((unused)) static int opens(const char *path, int flags) {
  return open(path, flags, 0600) >= 0 ? 0 : -1;
}

__attribute__((unused)) static int got(long result) { return result < 0 ? -1 : 0; }

/* The call must not be let in at all: an error of its own means that it was. */
__attribute__((unused)) static int let_in(long result) {
  return result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES) ? -1 : 0;
}

__attribute__((unused)) static struct sockaddr_in inet(const char *address, int number) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(number)};
  inet_pton(AF_INET, address, &to.sin_addr);
  return to;
}

/* Connects within a second. */
__attribute__((unused)) static int connects(int fd, const void *to, socklen_t length) {
  if (fd < 0) return -1;
  struct timeval soon = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  return connect(fd, to, length);
}

int main(int count, char **arguments) {
  if (count < 5) return 2;
  outside = arguments[1];
  port = atoi(arguments[2]);
  abstract_name = arguments[3];
  outsider = atoi(arguments[4]);
  if (attempt() == 0) {
    puts("got through");
    return 0;
  }
  printf("denied: %s\n", strerror(errno));
  return 1;
}
