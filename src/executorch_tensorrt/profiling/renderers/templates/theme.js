// Before the first paint: the theme that the reader chose last time.
try {
  const theme = localStorage.getItem("etrt-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* A page from disk may have no storage. */ }
