/* Fills files in memory and keeps them where no process has them: `queue`, in a socket's queue; `map`, mapped and closed; `open`, as descriptors;
   `name`, sealed and by descriptors that only name them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 16 << 20 };

static void queue(int to, int file) {
  char control[CMSG_SPACE(sizeof file)] = {0};
  struct iovec text = {"x", 1};
  struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(head), &file, sizeof file);
  sendmsg(to, &message, MSG_DONTWAIT);
}

int main(int count, char **arguments) {
  static char piece[1 << 20];
  const char *how = count > 1 ? arguments[1] : "queue";
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  for (long megabytes = 0; megabytes < 3008; megabytes += 16) {
    int file = memfd_create("file", MFD_ALLOW_SEALING | 8 /* MFD_NOEXEC_SEAL */);
    if (file < 0) { printf("%ld\n", megabytes); return 3; }
    for (int part = 0; part < 16; part++) write(file, piece, sizeof piece);
    if (!strcmp(how, "queue")) queue(pair[0], file);
    if (!strcmp(how, "map")) mmap(0, SIZE, PROT_READ, MAP_PRIVATE, file, 0);
    if (!strcmp(how, "name")) {
      char path[64];
      snprintf(path, sizeof path, "/proc/self/fd/%d", file);
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
      open(path, O_PATH);
    }
    if (strcmp(how, "open")) close(file);
  }
  puts("3008");
  return 0;
}
