/* Fills files in memory and leaves them in a socket's queue, where no process has them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  static char piece[1 << 20];
  int pair[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  for (long megabytes = 0; megabytes < 4096; megabytes += 16) {
    int file = memfd_create("file", 8 /* MFD_NOEXEC_SEAL */);
    if (file < 0) { printf("%ld\n", megabytes); return 3; }
    for (int part = 0; part < 16; part++) write(file, piece, sizeof piece);
    char control[CMSG_SPACE(sizeof file)] = {0};
    struct iovec text = {"x", 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    sendmsg(pair[0], &message, MSG_DONTWAIT);
    close(file);
  }
  puts("4096");
  return 0;
}
