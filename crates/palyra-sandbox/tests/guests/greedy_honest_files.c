/* Makes more files in memory than fit, but never has more than one; then uses one as programs do: written, mapped, sealed, handed to a child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  static char piece[1 << 20];
  for (int turn = 0; turn < 64; turn++) {
    int file = memfd_create("turn", MFD_CLOEXEC);
    for (int part = 0; part < 16; part++)
      if (write(file, piece, sizeof piece) != sizeof piece) { perror("write"); return 1; }
    close(file);
  }
  int file = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) || status.st_size) { perror("memfd_create"); return 1; }
  if (!(fcntl(file, F_GETFD) & FD_CLOEXEC) || fcntl(file, F_GET_SEALS)) { perror("flags"); return 1; }
  if (ftruncate(file, 8192)) { perror("ftruncate"); return 1; }
  char *text = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (text == MAP_FAILED) { perror("mmap"); return 1; }
  strcpy(text, "written through a mapping");
  munmap(text, 8192);
  if (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)) { perror("seal"); return 1; }
  if (write(file, "x", 1) >= 0 || ftruncate(file, 0) == 0) { puts("the seal does not hold"); return 1; }
  if (fork() == 0) {
    char *again = mmap(0, 8192, PROT_READ, MAP_PRIVATE, file, 0);
    puts(again == MAP_FAILED ? "unreadable" : again);
    fflush(stdout);
    _exit(0);
  }
  wait(0);
  int plain = memfd_create("plain", 0);
  printf("%d %d %d\n", fcntl(plain, F_GETFD), fcntl(plain, F_GET_SEALS), memfd_create("bad", 0x40000000));
  return 0;
}
